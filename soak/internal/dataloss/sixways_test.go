package dataloss

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/fakedriver"
	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

// way is something by which data may be lost.
type way struct {
	name string
	// play lets it happen, and returns what was lost. The rest of it is about
	// what the daemon does instead.
	play func(*node) error
}

// TestSixWaysToLoseData: by each of these the archived driver deletes what is
// in use, or what never was its own.
func TestSixWaysToLoseData(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		way
		bug fakedriver.Bug
	}{
		{way{"a failed unmount", failedUnmount}, fakedriver.DeletesBusy},
		{way{"published again within its lifespan", publishedAgain}, fakedriver.DeletesAgain},
		{way{"a failed mount", failedMount}, fakedriver.DeletesFailed},
		{way{"a volume ID that leads up", idLeadsUp}, fakedriver.FollowsID},
		{way{"the volume ID of a dot", idIsDot}, fakedriver.TakesDot},
		{way{"a mount inside a retained volume", mountInside}, fakedriver.EntersMounts},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			t.Run("fake", func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.startFake(way.bug)
				err := way.play(n)
				if !errors.Is(err, errLost) {
					t.Errorf("%v, want something to be lost", err)
				}
				t.Log(err)
			})
			way.runWithDaemon(t)
		})
	}
}

// runWithDaemon plays it on the real daemon, which loses nothing.
func (w way) runWithDaemon(t *testing.T) {
	t.Run("katbox", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		n.startDaemon()
		if err := w.play(n); err != nil {
			t.Error(err)
		}
		// Whatever it was about to do is done now.
		n.try(n.daemon.Stop())
		if err := n.lost(); err != nil {
			t.Errorf("when the daemon had ended: %v", err)
		}
	})
}

// TestOrdinaryLife: neither driver loses anything when nothing goes wrong.
func TestOrdinaryLife(t *testing.T) {
	t.Parallel()
	life := way{"an ordinary life", func(n *node) error {
		running, v := n.live(), n.live()
		began := time.Now()
		n.try(n.unpublish(v))
		if err := n.lostSince(began); err != nil {
			return err
		}
		n.expires(v)
		n.isPublished(running)
		return n.lost()
	}}
	life.runWithDaemon(t)
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		n := newNode(t)
		n.startFake("")
		if err := life.play(n); err != nil {
			t.Error(err)
		}
	})
}

// failedUnmount: a process still uses the target. The archived driver has queued
// the directory by then.
func failedUnmount(n *node) error { return unmountWhileBusy(n, func() {}) }

// unmountWhileBusy has an unpublish refused, and then something else happen.
func unmountWhileBusy(n *node, then func()) error {
	v := n.live()
	busy, err := os.Open(filepath.Join(v.target, "file"))
	n.try(err)
	defer busy.Close()
	n.answers(codes.Aborted, n.unpublish(v))
	then()
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.isPublished(v)
	ended := time.Now()
	n.try(busy.Close())
	n.eventually("unmounted without another call", func() bool { return !exists(v.target) })
	if err := n.lostSince(ended); err != nil {
		return err
	}
	n.expires(v)
	return nil
}

// publishedAgain: a node was rebooted. The archived driver leaves the volume in
// its queue.
func publishedAgain(n *node) error {
	var v vol
	for inTime := false; !inTime; {
		v = n.live()
		began := time.Now()
		err := errors.Join(n.unpublish(v), n.publish(v))
		if inTime = time.Since(began) < n.lifespan; inTime {
			n.try(err)
		} else {
			n.expendable(v) // so slow a machine that it has expired in between
		}
	}
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.isPublished(v)
	return n.ends(v)
}

// failedMount: after a reboot something is where the target was. The archived
// driver takes back what it did by deleting the data directory, with what was in
// there before.
func failedMount(n *node) error {
	v := n.live()
	n.try(host.Unmount(v.target), os.Remove(v.target), os.WriteFile(v.target, nil, 0o600))
	n.answers(codes.Internal, n.publish(v))
	if err := n.lost(); err != nil {
		return err
	}
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.try(os.Remove(v.target))
	n.answers(codes.OK, n.publish(v))
	n.isPublished(v)
	return n.ends(v)
}

// idLeadsUp: the archived driver joins paths and looks no further. It does not
// know the pod of a volume that was never published, so that path is shorter.
func idLeadsUp(n *node) error {
	n.file(filepath.Join(n.layout.Dir, "x", "file"))
	n.file(filepath.Join(n.ground, "y", "file"))
	v, unknown := n.volume(), n.volume()
	v.id, unknown.id = "../../x", "../../y"
	n.answers(codes.InvalidArgument, n.unpublish(unknown))
	n.answers(codes.InvalidArgument, n.publish(v))
	n.answers(codes.InvalidArgument, n.unpublish(v))
	n.is(!exists(v.target), "a target was made")
	n.passDeadline()
	return n.lost()
}

// idIsDot: of a volume that it does not know the archived driver takes the working
// directory for the data directory.
func idIsDot(n *node) error {
	running, dot := n.live(), n.volume()
	dot.id = "."
	n.answers(codes.InvalidArgument, n.unpublish(dot))
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.isPublished(running)
	return n.ends(running)
}

// mountInside: somebody mounted something inside a volume. The archived driver
// walks into it.
func mountInside(n *node) error {
	v := n.live()
	inside := filepath.Join(v.data, "inside")
	n.try(os.Mkdir(inside, 0o755), host.Bind(n.foreign.Directory(0), inside))
	n.try(n.unpublish(v))
	n.expendable(v)
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.eventually("what is beside the mount is erased", func() bool { return !exists(v.data) && len(n.files(".trash/*/file")) == 0 })
	running := n.live()
	n.kill()
	mounts, err := host.MountsBelow(n.layout.Work)
	n.try(err)
	n.is(len(mounts) == 1, "below the working directory is mounted: %v, want what was in the volume and nothing else", mounts)
	for _, m := range mounts {
		n.try(host.Unmount(m.Point))
	}
	n.start()
	n.eventually("the rest is erased", func() bool { return len(n.files(".trash/*")) == 0 })
	n.isPublished(running)
	return n.ends(running)
}

// files are those in the working directory that fit a pattern.
func (n *node) files(pattern string) []string {
	n.t.Helper()
	var found []string
	var err error
	testbed.Unforked(func() { found, err = filepath.Glob(filepath.Join(n.layout.Work, pattern)) })
	n.try(err)
	return found
}
