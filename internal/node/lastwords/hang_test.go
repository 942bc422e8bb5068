package lastwords

import (
	"context"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/testing/roottest"
)

func (n *node) wait(ended <-chan struct{}) {
	n.t.Helper()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		n.t.Fatal("it waits for the disk")
	}
}

// atOnce fails if f waits.
func (n *node) atOnce(f func()) {
	n.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	n.wait(ended)
}

// TestDiskThatHangs: an actor that follows pods and leaves them waits for no disk, and who looks waits as long as they want.
// What was left is closed once the disk goes on.
func TestDiskThatHangs(t *testing.T) {
	roottest.Need(t)
	n := start(t, 100)
	n.write("main", "0.log", line("text"))
	n.Follow(nightly)
	n.await(1)
	hangs, goOn := roottest.HangOpens(t, n.path())
	n.write("second", "0.log", line("more"))
	n.wait(hangs)
	other := nightly
	other.UID, other.Name = "11111111-8b1f-4a52-9c7b-2f8f9b0c1d2e", "another"
	n.atOnce(func() { n.Follow(other) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * mostLooks {
		n.atOnce(func() { n.Look(ctx, nightly.UID) })
	}
	n.atOnce(func() { n.Leave(nightly.UID) })
	n.atOnce(func() { n.Leave(other.UID) })
	n.atOnce(func() { n.Follow(nightly) })
	goOn()
	n.await(2)
	n.atOnce(func() { n.Leave(nightly.UID) })
	n.await(0)
}

// TestWatchThatHangs: on some file systems to watch a directory asks a server.
func TestWatchThatHangs(t *testing.T) {
	n := start(t, 100)
	n.watch.adding.Lock()
	n.atOnce(func() { n.Follow(nightly) })
	n.atOnce(func() { n.Leave(nightly.UID) })
	n.atOnce(func() { n.Follow(nightly) })
	n.write("main", "0.log", line("text"))
	n.watch.adding.Unlock()
	n.await(1)
}

// TestFollowedAgain: the directory of a pod that is left and followed again is still watched.
func TestFollowedAgain(t *testing.T) {
	n := start(t, 100)
	n.write("main", "0.log", line("text"))
	for range 50 {
		n.Follow(nightly)
		n.await(1)
		n.Leave(nightly.UID)
		n.Follow(nightly)
		n.Look(t.Context(), nightly.UID)
		n.Leave(nightly.UID)
		n.await(0)
	}
	n.Follow(nightly)
	n.await(1)
	n.write("main", "1.log", line("more"))
	n.await(2)
}
