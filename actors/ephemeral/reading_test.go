package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/paths"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/testing/metricstest"
	"github.com/katbox/katbox/messages"
)

// heldKernel holds what an operation looks at first, while held is set.
type heldKernel struct {
	*fakeMounter
	mu   sync.Mutex
	held chan struct{}
}

func (k *heldKernel) Shows(target, source string) (mount.Showing, error) {
	k.mu.Lock()
	held := k.held
	k.mu.Unlock()
	if held != nil {
		<-held
	}
	return k.fakeMounter.Shows(target, source)
}

// hold holds operations until release is called.
func (k *heldKernel) hold() (release func()) {
	held := make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = held
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.held = nil
		close(held)
	}
}

// withHeldNode is withNode with a kernel whose answers a test can hold.
func withHeldNode(t *testing.T, test func(t *testing.T, h *testNode, k *heldKernel)) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		k := &heldKernel{fakeMounter: h.mounter}
		h.kernel = k
		h.start()
		test(t, h, k)
		h.stop()
	})
}

// read begins to read the test node's volume, and looks at the marker in it.
func (h *testNode) read() *files.Reading {
	h.t.Helper()
	reading, err := h.node.Read(h.t.Context(), testID)
	if err != nil {
		h.t.Fatalf("read: %v", err)
	}
	marker, err := paths.ParseRef("marker")
	if err != nil {
		h.t.Fatal(err)
	}
	if entry, err := reading.Tree.Stat(marker); err != nil || entry.Size != int64(len(testID)) {
		h.t.Fatalf("the marker is %+v, %v", entry, err)
	}
	return reading
}

// retain publishes and unpublishes the test node's volume, with a marker in it.
func (h *testNode) retain() {
	h.t.Helper()
	h.publish()
	h.writeMarker(testPod, testID)
	h.unpublish()
	synctest.Wait()
}

func (h *testNode) wantLeases(want float64) {
	h.t.Helper()
	h.wantValues("leases", metricstest.Values{"katbox_read_leases": want})
}

// wantValues checks what the metrics say.
func (h *testNode) wantValues(when string, want metricstest.Values) {
	h.t.Helper()
	synctest.Wait()
	metricstest.Of(h.t, h.metrics).Want(h.t, when, want)
}

// list returns the IDs of all volumes that are selected, page by page.
func (h *testNode) list(s volume.Selection) (ids []volume.ID) {
	h.t.Helper()
	for {
		page, err := h.node.List(h.t.Context(), s)
		if err != nil || len(page.Volumes) > s.Limit {
			h.t.Fatalf("list: %d volumes, %v", len(page.Volumes), err)
		}
		for _, v := range page.Volumes {
			ids = append(ids, v.Record.ID)
		}
		if s.Before = page.Next; page.Next.IsZero() {
			return ids
		}
	}
}

// TestReadingEnds with a cause, at once, and whatever ends it waits for no reader.
func TestReadingEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(h *testNode)
		want error
	}{
		"published again": {(*testNode).publish, volume.ErrNotRetained},
		"expired":         {func(*testNode) { time.Sleep(testLifespan) }, volume.ErrGone},
		"evicted": {func(h *testNode) {
			h.disk.set(0, nil)
			time.Sleep(time.Minute)
		}, volume.ErrGone},
		"removed": {func(h *testNode) {
			if err := h.node.Purge(h.t.Context(), testID, "root", ""); err != nil {
				h.t.Error(err)
			}
		}, volume.ErrGone},
	} {
		t.Run(name, func(t *testing.T) {
			withNode(t, func(t *testing.T, h *testNode) {
				h.retain()
				first, second := h.read(), h.read()
				h.wantLeases(2)
				second.Close()
				second.Close()
				h.wantLeases(1)
				if err := first.Lost.Err(); err != nil {
					t.Fatalf("lost before: %v", context.Cause(first.Lost))
				}
				tt.end(h)
				synctest.Wait()
				wantError(t, context.Cause(first.Lost), tt.want)
				h.wantLeases(0)
				if errors.Is(tt.want, volume.ErrGone) {
					h.wantGone(testPod, testID)
				} else {
					h.wantPhase(testID, volume.Publishing) // the mount is what says that it is published
				}
				first.Close()
				h.wantLeases(0)
			})
		})
	}
}

// TestPublishWaitsForNoReader: it ends readings before it begins.
func TestPublishWaitsForNoReader(t *testing.T) {
	withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
		h.retain()
		reading := h.read()
		release := k.hold()
		published := make(chan error, 1)
		began := time.Now()
		go func() { published <- h.node.Publish(t.Context(), h.publication()) }()
		synctest.Wait()
		wantError(t, context.Cause(reading.Lost), volume.ErrNotRetained)
		_, err := h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrNotRetained)
		release()
		if err := <-published; err != nil || time.Since(began) != 0 {
			t.Errorf("published after %v: %v", time.Since(began), err)
		}
		reading.Close()
	})
}

// TestRepeatedUnpublishEndsNoReading: the volume stays as it is, also for lists, while it is awake.
func TestRepeatedUnpublishEndsNoReading(t *testing.T) {
	withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
		h.retain()
		before, err := h.node.Describe(t.Context(), testID)
		if err != nil {
			t.Fatal(err)
		}
		reading := h.read()
		release := k.hold()
		unpublished := make(chan error, 1)
		go func() { unpublished <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")) }()
		synctest.Wait()

		if listed := h.list(volume.Selection{Namespace: "default", Limit: 1}); !slices.Equal(listed, []volume.ID{testID}) {
			t.Errorf("listed %v", listed)
		}
		if awake, err := h.node.Awake(t.Context()); err != nil || len(awake) != 0 {
			t.Errorf("awake: %v, %v", awake, err)
		}
		during, err := h.node.Describe(t.Context(), testID)
		if err != nil || during.Record.Phase != volume.Retained || !during.Deadline.Equal(before.Deadline) {
			t.Errorf("described as %+v, %v; before as %+v", during, err, before)
		}
		h.read().Close()
		release()
		if err := <-unpublished; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := reading.Lost.Err(); err != nil {
			t.Errorf("lost: %v", context.Cause(reading.Lost))
		}
		h.publish()
		wantError(t, context.Cause(reading.Lost), volume.ErrNotRetained)
		reading.Close()
		h.wantLeases(0)
	})
}

// TestPublishDuringRepeatedUnpublish: from then on no reading begins.
func TestPublishDuringRepeatedUnpublish(t *testing.T) {
	withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
		h.retain()
		reading := h.read()
		release := k.hold()
		unpublished := make(chan error, 1)
		go func() { unpublished <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")) }()
		synctest.Wait()
		wantError(t, h.node.Publish(t.Context(), h.publication()), volume.ErrBusy)
		wantError(t, context.Cause(reading.Lost), volume.ErrNotRetained)
		_, err := h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrNotRetained)
		release()
		if err := <-unpublished; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.read().Close()
		reading.Close()
		h.wantLeases(0)
	})
}

// TestRemoveDuringRepeatedUnpublish is refused, and nothing is deleted.
func TestRemoveDuringRepeatedUnpublish(t *testing.T) {
	withHeldNode(t, func(t *testing.T, h *testNode, k *heldKernel) {
		h.retain()
		release := k.hold()
		unpublished := make(chan error, 1)
		go func() { unpublished <- h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")) }()
		synctest.Wait()
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), volume.ErrNotRetained)
		release()
		if err := <-unpublished; err != nil {
			t.Fatal(err)
		}
		h.wantPhase(testID, volume.Retained)
		if err := h.node.Purge(t.Context(), testID, "root", ""); err != nil {
			t.Fatal(err)
		}
		h.wantGone(testPod, testID)
	})
}

// TestLeaseOfAReaderThatIsGone does not leak, whether the reader has seen the answer or not.
func TestLeaseOfAReaderThatIsGone(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			if reading, err := h.node.Read(ctx, testID); err == nil {
				reading.Close()
			}
		}
		h.wantLeases(0)
	})
}

// TestReadingThatIsLostAtOnce: the cause counts, whatever is found in the volume's place.
func TestReadingThatIsLostAtOnce(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		lost, lose := context.WithCancelCause(t.Context())
		lease := &messages.Lease{Description: volume.Description{Record: h.wantPhase(testID, volume.Retained)}, Lost: lost}
		lose(volume.ErrNotRetained)
		_, err := h.node.open(lease, func() {})
		wantError(t, err, volume.ErrNotRetained)
		if _, err := h.scratch.Discard(lease.Record.Place()); err != nil {
			t.Fatal(err)
		}
		_, err = h.node.open(lease, func() {})
		wantError(t, err, volume.ErrNotRetained)
	})
}

// TestReadingOfMissingData: the lease is given back.
func TestReadingOfMissingData(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		if _, err := h.scratch.Discard(volume.Place{Pod: testPod, ID: testID}); err != nil {
			t.Fatal(err)
		}
		_, err := h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrGone)
		h.wantLeases(0)
	})
}

// TestStopEndsReadings before the actors end, and none begins.
func TestStopEndsReadings(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		reading := h.read()
		h.node.cancel()
		wantError(t, context.Cause(reading.Lost), volume.ErrUnavailable)
		reading.Close()
		_, err := h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrUnavailable)
		wantError(t, h.node.Purge(t.Context(), testID, "root", ""), volume.ErrUnavailable)
		h.wantPhase(testID, volume.Retained)
	})
}

// TestDescribe describes a volume in each phase.
func TestDescribe(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		want := func(phase volume.Phase, deadline time.Time, readErr error) {
			t.Helper()
			synctest.Wait()
			d, err := h.node.Describe(t.Context(), testID)
			if err != nil || d.Record.Phase != phase || d.Record.PodName != "batch-1" || !d.Deadline.Equal(deadline) || d.Early {
				t.Errorf("described as %+v, %v; want %s, deadline %v", d, err, phase, deadline)
			}
			reading, err := h.node.Read(t.Context(), testID)
			if !errors.Is(err, readErr) {
				t.Errorf("%s: read: %v, want %v", phase, err, readErr)
			}
			if err == nil {
				reading.Close()
			}
			wantAwake := 0
			if phase.Live() {
				wantAwake = 1
			}
			if awake, err := h.node.Awake(t.Context()); err != nil || len(awake) != wantAwake {
				t.Errorf("%s: awake: %v, %v", phase, awake, err)
			}
		}
		_, err := h.node.Describe(t.Context(), testID)
		wantError(t, err, volume.ErrNotFound)
		_, err = h.node.Read(t.Context(), testID)
		wantError(t, err, volume.ErrNotFound)

		h.publish()
		want(volume.Published, time.Time{}, volume.ErrNotRetained)
		h.mounter.fail(nil, always(unix.EBUSY))
		wantError(t, h.node.Unpublish(t.Context(), testID, h.target(testPod, "mount")), volume.ErrBusy)
		want(volume.Unpublishing, time.Time{}, volume.ErrNotRetained)
		h.mounter.fail(nil, nil)
		h.unpublish()
		deadline := time.Now().Add(testLifespan)
		want(volume.Retained, deadline, nil)
		h.restart()
		want(volume.Retained, deadline, nil)

		h.records.fail(func(changes []volume.Change) error {
			if changes[0].Record == nil {
				return unix.EIO
			}
			return nil
		})
		time.Sleep(testLifespan)
		want(volume.Deleting, time.Time{}, volume.ErrGone)
		h.records.fail(nil)
	})
}

// TestReadAtOnceAfterAnUnpublish: the volume need not sleep yet.
func TestReadAtOnceAfterAnUnpublish(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		for range 300 {
			h.publish()
			h.unpublish()
			reading, err := h.node.Read(t.Context(), testID)
			if err != nil {
				t.Fatal(err)
			}
			reading.Close()
		}
	})
}

// TestDescribeUnderPressure: the deadline is the one that counts.
func TestDescribeUnderPressure(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		h.retain()
		retained := time.Now()
		h.disk.set(75, nil) // in the middle between headroom and floor
		time.Sleep(time.Minute)
		d, err := h.node.Describe(t.Context(), testID)
		if err != nil || !d.Early || !d.Deadline.Equal(retained.Add(testLifespan/2)) || d.Size == (volume.Size{}) {
			t.Errorf("described as %+v, %v", d, err)
		}
	})
}

// TestDescribeOfAVolumeThatGoesToSleep is answered at once, whatever its actor does just then.
func TestDescribeOfAVolumeThatGoesToSleep(t *testing.T) {
	withNode(t, func(t *testing.T, h *testNode) {
		began := time.Now()
		for range 100 {
			h.publish()
			var described sync.WaitGroup
			for range 4 {
				described.Go(func() {
					for range 5 {
						if _, err := h.node.Describe(t.Context(), testID); err != nil {
							t.Error(err)
						}
					}
				})
			}
			h.unpublish()
			described.Wait()
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

// TestListsWhileVolumesComeAndGo: nothing is listed twice, and what was there all the time is
// listed, also volumes whose unpublish is repeated meanwhile.
func TestListsWhileVolumesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const stay = 50
		for i := range stay {
			h.retained(numberedPod(i), numbered(i), time.Duration(i)*time.Minute, testLifespan)
		}
		h.start()
		ctx, cancel := context.WithCancel(t.Context())
		var churn sync.WaitGroup
		churn.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := h.node.Unpublish(t.Context(), numbered(i%stay), h.target(numberedPod(i%stay), "mount")); err != nil {
					t.Error(err)
				}
				h.publish()
				h.unpublish()
			}
		})
		for range 20 {
			listed := h.list(volume.Selection{Limit: 3})
			slices.Sort(listed)
			for i := range stay {
				if !slices.Contains(listed, numbered(i)) {
					t.Errorf("%s is left out", numbered(i))
				}
			}
			if compact := slices.Compact(slices.Clone(listed)); len(compact) != len(listed) {
				t.Errorf("listed twice: %v", listed)
			}
		}
		cancel()
		churn.Wait()
		h.stop()
	})
}

// TestListOfManyIsComplete: a page is filled even where few volumes are selected.
func TestListOfManyIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		const many = 2*listSlice + 5
		for i := range many {
			r := volume.Record{ID: numbered(i), Pod: numberedPod(i), Namespace: "ci", PodName: fmt.Sprintf("job-%d", i%(listSlice-1))}
			h.records.put(r.Retain(time.Now().Add(-time.Duration(i)*time.Second), testLifespan))
		}
		h.start()
		page, err := h.node.List(t.Context(), volume.Selection{Namespace: "ci", PodName: "job-1", Limit: 3})
		if err != nil || len(page.Volumes) != 3 || page.Volumes[2].Record.ID != numbered(1+2*(listSlice-1)) {
			t.Errorf("a page of %d volumes, %v", len(page.Volumes), err)
		}
		if listed := h.list(volume.Selection{Limit: 5000}); len(listed) != many {
			t.Errorf("%d volumes of all", len(listed))
		}
		h.stop()
	})
}
