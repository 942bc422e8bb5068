package ephemeral

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

func (h *testNode) wantHealthy(when string) {
	h.t.Helper()
	if err := h.node.Healthy(withTimeout(h.t, time.Minute)); err != nil {
		h.t.Errorf("%s: not healthy: %v", when, err)
	}
}

// TestHealthIsACommit: one that has just been is proof enough, and without one the recorder makes
// one that changes nothing.
func TestHealthIsACommit(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.wantHealthy("at the start")
		if got := h.records.committed(); got != 1 {
			t.Fatalf("%d commits for the first question, want 1", got)
		}
		time.Sleep(actors.CommitProves / 2)
		h.wantHealthy("half a second later")
		if got := h.records.committed(); got != 1 {
			t.Errorf("%d commits, though one has just been", got)
		}
		time.Sleep(actors.CommitProves)
		h.publish()
		before := h.records.committed()
		h.wantHealthy("after a publish")
		if got := h.records.committed(); got != before {
			t.Errorf("%d commits, want the one of the publish to do", got-before)
		}
		time.Sleep(actors.CommitProves)
		h.wantHealthy("a second later")
		if got := h.records.committed(); got != before+1 {
			t.Errorf("%d commits more, want 1", got-before)
		}
		// Health changes no record.
		h.wantPhase(testID, volume.Publishing)
	})
}

// TestHealthOfADiskThatHangs: everybody gets an answer in time, and one write is all that waits for
// the disk.
func TestHealthOfADiskThatHangs(t *testing.T) {
	const askers = 20 * actors.MaxProbes
	withNode(t, func(t *testing.T, h *testNode) {
		release := make(chan struct{})
		var writes atomic.Int64
		h.records.fail(func([]volume.Change) error { writes.Add(1); <-release; return nil })
		full := 0
		for range askers {
			began := time.Now()
			err := h.node.Healthy(withTimeout(t, time.Second))
			if err == nil || time.Since(began) > time.Second {
				t.Fatalf("answered with %v after %s", err, time.Since(began))
			}
			if errors.Is(err, volume.ErrUnavailable) && strings.Contains(err.Error(), "has not ended") {
				full++
			} else {
				wantError(t, err, context.DeadlineExceeded)
			}
		}
		if writes.Load() != 1 || full != askers-actors.MaxProbes {
			t.Errorf("%d writes, and %d of %d were turned away; want 1 and all but %d", writes.Load(), full, askers, actors.MaxProbes)
		}
		if err := h.node.Ready(withTimeout(t, time.Second)); err != nil {
			t.Errorf("the actors wait for the disk: %v", err)
		}
		close(release)
		synctest.Wait()
		h.wantHealthy("when it goes on")
		time.Sleep(actors.CommitProves)
		h.wantHealthy("a second later")
		if writes.Load() != 2 {
			t.Errorf("%d writes, want 2", writes.Load())
		}
	})
}

// TestHealthIsShared: those who ask while a commit runs wait for that one.
func TestHealthIsShared(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		release := make(chan error)
		h.records.fail(func([]volume.Change) error { return <-release })
		published := make(chan error, 1)
		go func() { published <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range actors.MaxProbes {
			wg.Go(func() { wantHealthError(t, h.node.Healthy(t.Context()), unix.EIO) })
		}
		synctest.Wait()
		release <- unix.EIO
		wg.Wait()
		wantError(t, <-published, volume.ErrFailed)
		h.records.fail(nil)
		if got := h.records.committed(); got != 0 {
			t.Errorf("%d commits besides", got)
		}
		h.wantHealthy("a disk that is well again")
	})
}

func wantHealthError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestHealthAfterAFailedWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		failure error
		healthy bool
	}{
		"no room":    {unix.ENOSPC, true},
		"no quota":   {unix.EDQUOT, true},
		"broken":     {unix.EIO, false},
		"read-only":  {unix.EROFS, false},
		"not usable": {store.ErrDamaged, false},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.records.fail(func([]volume.Change) error { return tt.failure })
				for range 3 { // at the same instant: a failure proves nothing
					if err := h.node.Healthy(withTimeout(t, time.Minute)); (err == nil) != tt.healthy {
						t.Errorf("healthy: %v, want %t", err, tt.healthy)
					}
				}
				h.records.fail(nil)
				h.wantHealthy("no longer")
			})
		})
	}
}

func TestStoppedNodeIsNotHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.start()
		h.stop()
		wantError(t, h.node.Healthy(withTimeout(t, time.Minute)), volume.ErrUnavailable)
		time.Sleep(2 * time.Second)
	})
}

// TestReserveIsTold: whether there is room for records on a full disk is asked for after each
// commit, and costs none.
func TestReserveIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.records.reserveErr = unix.ENOSPC
		h.start()
		metricstest.Of(t, h.metrics).Want(t, "at the start", metricstest.Values{"katbox_store_reserved": 0})
		h.records.mu.Lock()
		h.records.reserveErr = nil
		h.records.mu.Unlock()
		h.publish()
		metricstest.Of(t, h.metrics).Want(t, "after a commit", metricstest.Values{"katbox_store_reserved": 1})
		h.stop()
	})
}
