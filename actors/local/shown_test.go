package local

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/files"
)

// retained makes volumes that are kept without a claim.
func (h *harness) retained(names ...string) {
	h.Helper()
	for _, name := range names {
		h.must(h.create(name, gib/16))
		h.retain(name, "shop/"+name, "ns-1", time.Now())
	}
}

func (h *harness) read(name string) *files.Reading {
	h.Helper()
	r, err := h.node.Read(h.bounded(), volume.ID(name))
	h.must(err)
	h.Cleanup(r.Close)
	return r
}

func (h *harness) restore(name string) {
	h.Helper()
	_, err := h.node.CommentVolume(h.bounded(), fast, name, "restored")
	h.must(err)
}

// wantShown checks how many volumes are shown now, and how many were in all.
func (h *harness) wantShown(now, ever int) {
	h.Helper()
	synctest.Wait()
	h.locked(func() {
		if len(h.shown) != now || h.shows != ever {
			h.Errorf("%d are shown, and %d were in all, want %d and %d", len(h.shown), h.shows, now, ever)
		}
	})
}

// TestShowingServesAllReaders: an image is mounted once for those who read it, and stays for a while behind the last.
func TestShowingServesAllReaders(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.retained("v")
		first, second := h.read("v"), h.read("v")
		first.Close()
		h.pass(time.Minute)
		h.wantShown(1, 1)
		second.Close()
		h.pass(linger - time.Second)
		h.wantShown(1, 1)
		third := h.read("v")
		h.pass(time.Minute)
		h.wantShown(1, 1)
		third.Close()
		h.pass(linger)
		h.wantShown(0, 1)
		h.read("v").Close()
		h.wantShown(1, 2)
		h.restart(false) // it ends with the daemon
		h.wantShown(0, 2)
	})
}

// TestDirectoryIsNotMounted: it is let go with its last reader, and there may be any number.
func TestDirectoryIsNotMounted(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.disks["/fast"].is.Backend = local.Btrfs })
		h.restart(false)
		h.retained("v")
		h.read("v").Close()
		h.wantShown(0, 1)
		var all []*files.Reading
		for i := range mostShown + 2 {
			name := fmt.Sprint("w", i)
			h.retained(name)
			all = append(all, h.read(name))
		}
		for _, r := range all {
			r.Close()
		}
		h.wantShown(0, mostShown+3)
	})
}

// TestRestoreWhileItIsRead: the claim gets the volume at once, and the stage waits until the readers have left.
func TestRestoreWhileItIsRead(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.retained("v")
		r := h.read("v")
		go func() { // as a reader does
			<-r.Lost.Done()
			time.Sleep(3 * time.Second)
			r.Close()
			h.locked(func() { delete(h.held, "v") })
		}()
		h.locked(func() { h.held["v"] = true })
		h.restore("v")
		h.want(h.lost(r), volume.ErrNotRetained, "a claim has it")
		began := time.Now()
		h.must(h.stage("v"))
		if took := time.Since(began); took > 4*time.Second {
			h.Errorf("the stage took %s", took)
		}
		h.wantShown(0, 1)
		_, err := h.node.Read(h.bounded(), "v")
		h.want(err, volume.ErrNotRetained, "read what is staged")
		h.must(h.unstage("v"))
	})
}

// TestReaderThatDoesNotLeave keeps a volume from being staged and deleted, and says so. Nothing is forced.
func TestReaderThatDoesNotLeave(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.retained("back", "going")
		back, going := h.read("back"), h.read("going")
		h.locked(func() { h.held["back"], h.held["going"] = true, true })
		h.restore("back")
		h.want(h.stage("back"), volume.ErrBusy, "stage")
		h.want(h.remove("going"), volume.ErrBusy, "delete")
		h.want(h.lost(back), volume.ErrNotRetained, "a claim has it")
		h.want(h.lost(going), volume.ErrGone, "it is being deleted")
		back.Close()
		going.Close()
		h.locked(func() { clear(h.held) })
		h.must(h.stage("back"))
		h.pass(time.Minute) // the deletion is tried again by itself
		h.locked(func() {
			if _, ok := h.disks["/fast"].data["going"]; ok {
				h.Error("it was not deleted")
			}
		})
		h.must(h.remove("going"))
		h.must(h.unstage("back"))
	})
}

// TestRestoreWhileItIsMounted: a mount that takes its time is waited for, and no reader gets what it shows.
func TestRestoreWhileItIsMounted(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.retained("v", "w")
		h.locked(func() { h.slow["v"] = true })
		ended := make(chan error, 1)
		ctx := h.bounded()
		go func() {
			_, err := h.node.Read(ctx, "v")
			ended <- err
		}()
		synctest.Wait()
		h.read("w").Close() // nobody else waits
		h.restore("v")
		h.want(h.stage("v"), volume.ErrBusy, "stage")
		h.locked(func() { clear(h.slow) })
		h.want(<-ended, volume.ErrNotRetained, "read")
		synctest.Wait() // it is unmounted behind the answer
		h.must(h.stage("v"))
		h.must(h.unstage("v"))
	})
}

// TestMostImagesAreShown: there is a bound on those that are mounted. One without readers makes room.
func TestMostImagesAreShown(t *testing.T) {
	inWorld(t, func(h *harness) {
		var all []*files.Reading
		for i := range mostShown {
			name := fmt.Sprint("v", i)
			h.retained(name)
			all = append(all, h.read(name))
		}
		h.retained("w", "x")
		_, err := h.node.Read(h.bounded(), "w")
		h.want(err, volume.ErrUnavailable, "one more than may be")
		h.read("v0").Close() // it is mounted
		all[3].Close()
		h.pass(time.Second)
		all[5].Close()
		all = append(all, h.read("w"))
		h.wantShown(mostShown, mostShown+1)
		h.locked(func() {
			if h.shown["v3"] || !h.shown["v5"] || !h.shown["w"] {
				h.Errorf("shown are %v", h.shown)
			}
		})
		// One whose readers stay counts until they have left.
		h.locked(func() { h.held["v5"] = true })
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := h.node.Read(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			h.Errorf("read one more: %v", err)
		}
		h.locked(func() { clear(h.held) })
		h.read("x").Close()
		for _, r := range all {
			r.Close()
		}
		h.pass(linger)
		h.wantShown(0, mostShown+2)
		if h.most > mostShown {
			h.Errorf("%d were mounted at a time", h.most)
		}
	})
}

// TestMountThatFails is tried again by the next reader.
func TestMountThatFails(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.retained("v")
		refuse := func(call, _ string) error {
			if call == "show" {
				return volume.Invalid("volume", "v was not unmounted in order")
			}
			return nil
		}
		h.locked(func() { h.fail = refuse })
		for range mostShown + 1 { // it takes no slot
			_, err := h.node.Read(h.bounded(), "v")
			h.want(err, volume.ErrInvalid, "read")
		}
		h.locked(func() { h.fail = nil })
		h.read("v").Close()
		h.wantShown(1, 1)
		h.pass(linger)
		h.wantShown(0, 1)
	})
}

// TestBlockVolumeIsNotShown: it may hold anything.
func TestBlockVolumeIsNotShown(t *testing.T) {
	inWorld(t, func(h *harness) {
		_, err := h.node.CreateVolume(h.bounded(), fast, local.NewVolume{
			Name: "v", Size: gib, Block: true, Comment: pools.Comment{Retained: &pools.Retention{Since: time.Now()}}.String(),
		})
		h.must(err)
		_, err = h.node.Read(h.bounded(), "v")
		h.want(err, volume.ErrInvalid, "read")
		h.wantShown(0, 0)
	})
}

// TestDiskGoesWhileAnImageIsRead: the mount ends once the readers have left, and a new one comes with the disk.
func TestDiskGoesWhileAnImageIsRead(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.retained("v")
		r := h.read("v")
		h.locked(func() { h.held["v"] = true })
		h.locked(func() { h.disks["/fast"].away = true })
		h.pass(time.Minute)
		h.want(h.lost(r), volume.ErrUnavailable, "its disk is away")
		r.Close()
		h.locked(func() { h.held["v"] = false })
		h.wantShown(0, 1)
		h.locked(func() { h.disks["/fast"].away = false })
		h.pass(time.Minute)
		h.read("v").Close()
		h.wantShown(1, 2)
	})
}
