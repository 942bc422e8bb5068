package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

// TestLifeOfAVolume from its making to its deletion, with a new daemon in between.
func TestLifeOfAVolume(t *testing.T) {
	inWorld(t, func(h *harness) {
		made, err := h.node.CreateVolume(h.bounded(), fast, local.NewVolume{Name: "v", Size: gib - 1, FSType: "xfs", Comment: "whose"})
		h.must(err)
		if made.Size != gib || !made.Ready || made.InUse || made.Pool != fast || made.Comment != "whose" || made.FSType != "xfs" {
			h.Errorf("made %+v", made)
		}
		h.must(h.create("v", gib)) // again
		h.must(h.stage("v"))
		h.must(h.publish("v", "a"))
		h.must(h.stage("v"))
		h.want(h.unstage("v"), volume.ErrBusy, "unstage while it is published")
		h.want(h.remove("v"), pools.ErrInUse, "delete while it is published")
		h.restart(true)
		if v, err := h.find("v"); err != nil || !v.InUse || v.Size != gib {
			h.Errorf("after a restart: %+v, %v", v, err)
		}
		grown, err := h.node.GrowVolume(h.bounded(), fast, "v", 2*gib)
		if err != nil || grown.Size != 2*gib {
			h.Errorf("grown to %+v, %v", grown, err)
		}
		expansion := pools.NodeExpansion{Volume: "v", Path: podPath("v", "a"), Required: 2 * gib}
		if got, err := h.node.Expand(h.bounded(), expansion); err != nil || got != 2*gib {
			h.Errorf("expanded to %d, %v", got, err)
		}
		if s, err := h.node.Stats(h.bounded(), "v", podPath("v", "a")); err != nil || s.Space.Total.Bytes != 2*gib || s.Abnormal {
			h.Errorf("stats %+v, %v", s, err)
		}
		_, err = h.node.Stats(h.bounded(), "v", "/elsewhere")
		h.want(err, volume.ErrNotFound, "stats elsewhere")
		h.must(h.unpublish("v", "a"))
		h.must(h.unpublish("v", "a"))
		h.want(h.remove("v"), pools.ErrInUse, "delete while it is staged")
		h.must(h.unstage("v"))
		h.must(h.unstage("v"))
		h.must(h.remove("v"))
		h.must(h.remove("v"))
		_, err = h.find("v")
		h.want(err, volume.ErrNotFound, "find what was deleted")
		h.pass(time.Second)
		if left := h.leftovers(); len(left) > 0 {
			h.Errorf("left: %q", left)
		}
	})
}

// TestRoom: no two volumes get the same, however they come.
func TestRoom(t *testing.T) {
	inWorld(t, func(h *harness) {
		var mu sync.Mutex
		made, refused := 0, 0
		for i := range 15 {
			go func() {
				err := h.create(fmt.Sprintf("v%d", i), gib)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made++
				} else {
					h.want(err, volume.ErrNoSpace, "create")
					refused++
				}
			}()
		}
		h.pass(time.Second)
		if made != 10 || refused != 5 {
			h.Errorf("%d volumes of 1 GiB were made in 10 GiB, %d refused", made, refused)
		}
		all, err := h.node.Pools(h.bounded())
		h.must(err)
		if all[0].Provisioned != 10*gib || all[1].Provisioned != 0 || all[0].Class != "c" || all[0].Path != "/fast" {
			h.Errorf("pools %+v", all)
		}
		_, err = h.node.GrowVolume(h.bounded(), fast, firstOf(h), 2*gib)
		h.want(err, volume.ErrNoSpace, "grow in a full pool")
		h.must(h.remove(firstOf(h)))
		_, err = h.node.GrowVolume(h.bounded(), fast, firstOf(h), 2*gib)
		h.must(err)
		h.restart(false)
		h.want(h.create("more", sizeUnit), volume.ErrNoSpace, "create after a restart")
	})
}

func firstOf(h *harness) string {
	all, err := h.node.Volumes(h.bounded(), fast, "", 1)
	h.must(err)
	return all[0].Name
}

// TestFailedCreateLeavesNothing and can be repeated.
func TestFailedCreateLeavesNothing(t *testing.T) {
	for _, call := range []string{"save", "begin", "make"} {
		inWorld(t, func(h *harness) {
			h.locked(func() {
				h.fail = func(c, name string) error {
					if c == call && name == "v" {
						return fmt.Errorf("%w: no room", volume.ErrNoSpace)
					}
					return nil
				}
			})
			h.want(h.create("v", gib), volume.ErrNoSpace, "create where "+call+" fails")
			h.pass(time.Minute)
			if left := h.leftovers(); len(left) > 0 {
				h.Errorf("%s: left %q", call, left)
			}
			h.locked(func() { h.fail = nil })
			h.must(h.create("v", 10*gib))
		})
	}
}

// TestLongCopy: it blocks no other volume; callers hear that it goes on.
func TestLongCopy(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.must(h.create("other", gib))
		h.locked(func() { h.disks["/fast"].holds = true })
		began := time.Now()
		h.want(h.clone("copy", "v"), volume.ErrBusy, "a long copy")
		if took := time.Since(began); took != defaultPatience {
			h.Errorf("it was answered after %s", took)
		}
		h.must(h.stage("v"))
		h.must(h.stage("other"))
		h.must(h.unstage("v"))
		h.want(h.remove("v"), pools.ErrInUse, "delete the origin of a copy")
		h.want(h.remove("copy"), volume.ErrBusy, "delete what is being made")
		if v, err := h.find("copy"); err != nil || v.Ready {
			h.Errorf("while it is copied: %+v, %v", v, err)
		}
		h.locked(func() { h.disks["/fast"].holds = false })
		h.must(h.clone("copy", "v"))
		h.must(h.remove("v"))
		h.must(h.unstage("other"))
	})
}

func TestSnapshots(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.want(h.snap("s", "v"), volume.ErrNotFound, "a snapshot of nothing")
		_, err := h.node.CreateVolume(h.bounded(), fast, local.NewVolume{Name: "v", Size: gib, FSType: "xfs"})
		h.must(err)
		h.must(h.snap("s", "v"))
		h.must(h.snap("s", "v"))
		s, err := h.node.Snapshot(h.bounded(), fast, "s")
		if err != nil || s.Volume != "v" || s.Size != gib || !s.Ready {
			h.Errorf("snapshot %+v, %v", s, err)
		}
		if v, err := h.find("v"); err != nil || !v.HasSnapshots {
			h.Errorf("its volume %+v, %v", v, err)
		}
		h.want(h.remove("v"), pools.ErrInUse, "delete a volume with a snapshot")
		h.want(h.create("s", gib), volume.ErrConflict, "a volume of a snapshot's name")
		fromSnapshot := func(size int64) error {
			_, err := h.node.CreateVolume(h.bounded(), fast, local.NewVolume{Name: "w", Size: size, Source: local.Source{Snapshot: "s"}})
			return err
		}
		h.want(fromSnapshot(gib/2), pools.ErrOutOfRange, "a volume smaller than its snapshot")
		_, err = h.node.CreateVolume(h.bounded(), fast, local.NewVolume{Name: "w", Size: gib, Block: true, Source: local.Source{Snapshot: "s"}})
		h.want(err, volume.ErrInvalid, "a block device of a file system")
		h.must(fromSnapshot(2 * gib))
		if w, err := h.find("w"); err != nil || w.FSType != "xfs" {
			h.Errorf("a copy of an xfs is %+v, %v", w, err)
		}
		h.must(h.node.DeleteSnapshot(h.bounded(), fast, "s"))
		h.must(h.node.DeleteSnapshot(h.bounded(), fast, "s"))
		h.must(h.remove("v"))
		h.must(h.remove("w"))
		if all, err := h.node.Snapshots(h.bounded(), fast, "", 10); err != nil || len(all) != 0 {
			h.Errorf("left %+v, %v", all, err)
		}
	})
}

// TestGrowthThatIsRefused: a volume is as large as it was until it has really grown, also for a later daemon. It is used
// as it is meanwhile, and copies of it are as large as it is to be.
func TestGrowthThatIsRefused(t *testing.T) {
	inWorld(t, func(h *harness) {
		refused := errors.New("operation not permitted")
		refuse := func(do bool) {
			h.locked(func() {
				h.fail = nil
				if do {
					h.fail = func(call, name string) error {
						if call == "grow" && name == "v" {
							return refused
						}
						return nil
					}
				}
			})
		}
		grow := func(size int64) error {
			v, err := h.node.GrowVolume(h.bounded(), fast, "v", size)
			if err == nil && v.Size != size {
				h.Errorf("it grew to %d bytes, which are not %d", v.Size, size)
			}
			return err
		}
		has := func(size int64, when string) {
			h.Helper()
			all, err := h.node.Volumes(h.bounded(), fast, "", 1)
			if v, failed := h.find("v"); err != nil || failed != nil || v.Size != size || all[0].Size != size {
				h.Errorf("%s: %+v, %v; listed %+v, %v; want %d bytes", when, v, failed, all, err, size)
			}
		}
		expand := func() error {
			_, err := h.node.Expand(h.bounded(), pools.NodeExpansion{Volume: "v", Path: "/staging/v", Required: 2 * gib})
			return err
		}
		h.must(h.create("v", gib))
		h.must(h.stage("v"))
		refuse(true)
		for range 2 {
			h.want(grow(2*gib), volume.ErrUncertain, "grow what cannot")
			has(gib, "refused")
		}
		h.want(expand(), volume.ErrUncertain, "expand what cannot")
		h.restart(true)
		has(gib, "after a restart")
		h.want(grow(2*gib), volume.ErrUncertain, "grow what cannot, after a restart")
		h.must(h.clone("w", "v"))
		if w, err := h.node.Volume(h.bounded(), fast, "w"); err != nil || w.Size != 2*gib {
			h.Errorf("the copy is %+v, %v", w, err)
		}
		h.must(h.remove("w"))
		h.must(h.unstage("v"))
		h.must(h.stage("v"))
		has(gib, "staged as it is")
		h.must(h.unstage("v"))
		refuse(false)
		h.must(h.stage("v"))
		has(2*gib, "staged once it can grow")
		refuse(true)
		h.want(grow(3*gib), volume.ErrUncertain, "grow what cannot once more")
		h.want(grow(20*gib), volume.ErrNoSpace, "grow to more than there is")
		has(2*gib, "refused once more")
		refuse(false)
		h.must(expand())
		has(3*gib, "expanded")
		refuse(true)
		h.must(h.unstage("v"))
		h.must(h.stage("v")) // it is smaller than it should be, as a copy may be
		h.want(expand(), volume.ErrUncertain, "expand what is smaller than it should be")
		refuse(false)
		h.must(expand())
		h.must(h.unstage("v"))
		h.must(h.remove("v"))
		h.pass(time.Second)
		if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Provisioned != 0 {
			h.Errorf("pools %+v, %v", all, err)
		}
	})
}

// TestRetained: what is retained is staged for nobody, and what is in use is not retained.
func TestRetained(t *testing.T) {
	inWorld(t, func(h *harness) {
		retained := pools.Comment{Retained: &pools.Retention{Since: time.Now()}}.String()
		comment := func(text string) error {
			_, err := h.node.CommentVolume(h.bounded(), fast, "v", text)
			return err
		}
		h.must(h.create("v", gib))
		h.must(h.stage("v"))
		h.want(comment(retained), pools.ErrInUse, "retain what is staged")
		h.must(comment("other"))
		h.must(h.unstage("v"))
		h.must(comment(retained))
		h.must(comment(retained))
		h.want(h.stage("v"), volume.ErrUnavailable, "stage what is retained")
		if counts, _ := h.figure(fast); counts != (local.Counts{Retained: 1}) {
			h.Errorf("figures %+v", counts)
		}
		h.restart(true)
		h.want(h.stage("v"), volume.ErrUnavailable, "stage what is retained, after a restart")
		h.must(comment("restored"))
		h.must(h.stage("v"))
		h.must(h.unstage("v"))
	})
}

// TestDiskAway: the other pool goes on, pods are taken off, and all is there once the disk is back.
func TestDiskAway(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.must(h.stage("v"))
		h.must(h.publish("v", "a"))
		appeared := h.appeared
		h.locked(func() { h.disks["/fast"].away = true })
		h.pass(defaultWatchInterval + time.Second)
		h.want(h.create("w", gib), volume.ErrUnavailable, "create on a disk that is away")
		_, err := h.find("v")
		h.want(err, volume.ErrUnavailable, "find on a disk that is away")
		_, err = h.node.CreateVolume(h.bounded(), slow, local.NewVolume{Name: "x", Size: gib})
		h.must(err)
		if s, err := h.node.Stats(h.bounded(), "v", podPath("v", "a")); err != nil || !s.Abnormal || !strings.Contains(s.Condition, "/fast") {
			h.Errorf("stats %+v, %v", s, err)
		}
		if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Failed == "" || all[0].UUID != fast || all[1].Failed != "" {
			h.Errorf("pools %+v, %v", all, err)
		}
		segments, err := h.node.Segments(h.bounded())
		if want := map[string]string{pools.TopologyKey(slow): "here"}; err != nil || !maps.Equal(segments, want) {
			h.Errorf("the topology is %v, %v", segments, err)
		}
		if _, up := h.figure(fast); up {
			h.Error("it is up, as far as the metrics know")
		}
		h.must(h.unpublish("v", "a"))
		h.must(h.unstage("v"))
		h.restart(true)
		h.want(h.create("w", gib), volume.ErrUnavailable, "create on a disk that was away at the start")
		h.locked(func() { h.disks["/fast"].away = false })
		h.pass(defaultWatchInterval + time.Second)
		if h.appeared <= appeared {
			h.Error("no one has heard that the pool is back")
		}
		if v, err := h.find("v"); err != nil || !v.Ready {
			h.Errorf("%+v, %v", v, err)
		}
		h.must(h.stage("v"))
		h.must(h.unstage("v"))
	})
}

// TestCallersThatLeave keep no pool open: it could not be opened anew.
func TestCallersThatLeave(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		gone, leave := context.WithCancel(context.Background())
		leave()
		for range 50 {
			_, _ = h.node.Volumes(gone, fast, "", 0)
			_, _ = h.node.CreateVolume(gone, fast, local.NewVolume{Name: "w", Size: gib})
			_ = h.node.Stage(gone, pools.Staging{Volume: "v", Path: "/staging/v", Pool: fast})
		}
		h.must(h.unstage("v"))
		h.locked(func() { h.disks["/fast"].away = true })
		h.pass(3 * defaultWatchInterval)
		h.locked(func() { h.disks["/fast"].away = false })
		h.pass(3 * defaultWatchInterval)
		h.must(h.create("x", gib))
	})
}

// TestDiskThatHangs: callers of its volumes are answered, and the other pool goes on.
func TestDiskThatHangs(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.locked(func() { h.disks["/fast"].hangs = true })
		h.want(h.stage("v"), volume.ErrBusy, "stage from a disk that hangs")
		h.pass(3 * defaultWatchInterval)
		h.want(h.create("w", gib), volume.ErrUnavailable, "create on a disk that hangs")
		_, err := h.node.CreateVolume(h.bounded(), slow, local.NewVolume{Name: "x", Size: gib})
		h.must(err)
		h.locked(func() { h.disks["/fast"].hangs = false })
		h.pass(defaultWatchInterval)
		h.must(h.stage("v"))
		h.must(h.unstage("v"))
	})
}

// TestRecordThatCannotBeRead: what is known is served, nothing new is promised; once it can be read, all is as ever.
func TestRecordThatCannotBeRead(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.must(h.create("w", 8*gib))
		h.locked(func() { h.disks["/fast"].unread = "w" })
		h.restart(true)
		h.must(h.stage("v"))
		h.must(h.publish("v", "a"))
		h.must(h.create("v", gib))
		_, err := h.node.Stats(h.bounded(), "v", podPath("v", "a"))
		h.must(err)
		h.want(h.create("x", gib), volume.ErrUnavailable, "create where promises are not known")
		_, err = h.node.GrowVolume(h.bounded(), fast, "v", 2*gib)
		h.want(err, volume.ErrUnavailable, "grow where promises are not known")
		if _, err := h.find("w"); err == nil || errors.Is(err, volume.ErrNotFound) {
			t.Errorf("find what cannot be read: %v", err)
		}
		_, err = h.find("y")
		h.want(err, volume.ErrNotFound, "find what is not there")
		_, err = h.node.Volumes(h.bounded(), fast, "", 10)
		h.want(err, volume.ErrUnavailable, "list what cannot be read")
		if all, err := h.node.Pools(h.bounded()); err != nil || !strings.Contains(all[0].Failed, errUnread.Error()) {
			h.Errorf("pools %+v, %v", all, err)
		}
		h.locked(func() { h.disks["/fast"].unread = "" })
		h.pass(rereadInterval + 3*defaultWatchInterval)
		h.want(h.create("x", 2*gib), volume.ErrNoSpace, "create in a full pool")
		h.must(h.create("x", gib))
		if w, err := h.find("w"); err != nil || w.Size != 8*gib {
			h.Errorf("%+v, %v", w, err)
		}
		h.must(h.unpublish("v", "a"))
		h.must(h.unstage("v"))
	})
}

// TestPoolThatFails says why, as long as it does, though its disk is there.
func TestPoolThatFails(t *testing.T) {
	inWorld(t, func(h *harness) {
		const why = "the node has no loop devices"
		says := func(failed string) {
			t.Helper()
			if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Failed != failed || all[1].Failed != "" {
				h.Errorf("pools %+v, %v, want %q", all, err, failed)
			}
			if _, up := h.figure(fast); up != (failed == "") {
				h.Errorf("as far as the metrics know, it is up: %t", up)
			}
		}
		h.locked(func() { h.disks["/fast"].is.Failed = why })
		h.restart(true)
		says(why)
		h.locked(func() { h.disks["/fast"].is.Failed = "" })
		h.pass(defaultWatchInterval + time.Second)
		says("")
	})
}

// TestTwoDisksWithOneUUID: one is a copy of the other; the second is refused, and the first goes on.
func TestTwoDisksWithOneUUID(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.end(false)
		h.locked(func() { h.disks["/slow"] = newDisk(fast) })
		h.start()
		all, err := h.node.Pools(h.bounded())
		if err != nil || len(all) != 1 || all[0].UUID != fast || all[0].Failed != "" {
			h.Errorf("pools %+v, %v", all, err)
		}
		h.must(h.create("v", gib))
	})
}

// TestLists are whole, in pages of any size.
func TestLists(t *testing.T) {
	inWorld(t, func(h *harness) {
		for i := range 7 {
			h.must(h.create(fmt.Sprintf("v%d", i), gib))
		}
		h.must(h.snap("v3-s", "v3"))
		h.locked(func() { delete(h.disks["/fast"].records, "v4") }) // as if it went between the list and its record
		for limit := 1; limit < 9; limit++ {
			var names []string
			after := ""
			for {
				page, err := h.node.Volumes(h.bounded(), fast, after, limit)
				h.must(err)
				for _, v := range page {
					names = append(names, v.Name)
				}
				if len(page) < limit {
					break
				}
				after = page[len(page)-1].Name
			}
			if got := strings.Join(names, " "); got != "v0 v1 v2 v3 v5 v6" {
				h.Errorf("in pages of %d: %s", limit, got)
			}
		}
		all, err := h.node.Volumes(h.bounded(), fast, "", 0)
		if err != nil || len(all) != 6 || !all[3].HasSnapshots || all[2].HasSnapshots {
			h.Errorf("all: %+v, %v", all, err)
		}
		_, err = h.node.Volumes(h.bounded(), "33333333-3333-4333-8333-333333333333", "", 0)
		h.want(err, volume.ErrUnavailable, "list an unknown pool")
	})
}

func TestRefused(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.locked(func() { h.disks["/fast"].is.Block, h.disks["/fast"].is.Copies = false, false })
		for name, v := range map[string]local.NewVolume{
			"no name":      {Size: gib},
			"a path":       {Name: "../x", Size: gib},
			"no size":      {Name: "v"},
			"two sources":  {Name: "v", Size: gib, Source: local.Source{Snapshot: "s", Volume: "w"}},
			"a block":      {Name: "v", Size: gib, Block: true},
			"a copy":       {Name: "v", Size: gib, Source: local.Source{Volume: "w"}},
			"a bad source": {Name: "v", Size: gib, Source: local.Source{Volume: "/"}},
		} {
			_, err := h.node.CreateVolume(h.bounded(), fast, v)
			h.want(err, volume.ErrInvalid, name)
		}
		h.want(h.snap("s", "v"), volume.ErrInvalid, "a snapshot where there are none")
		h.must(h.create("v", gib))
		h.want(h.stage("x"), volume.ErrNotFound, "stage an unknown volume")
		h.want(h.publish("v", "a"), volume.ErrNotStaged, "publish what is not staged")
		block := pools.Staging{Volume: "v", Path: "/staging/v", Pool: fast, Block: true}
		h.want(h.node.Stage(h.bounded(), block), volume.ErrInvalid, "stage a file system as a block device")
		h.must(h.stage("v"))
		readOnly := pools.Staging{Volume: "v", Path: "/staging/v", Pool: fast, ReadOnly: true}
		h.want(h.node.Stage(h.bounded(), readOnly), volume.ErrConflict, "stage in another way")
		h.must(h.publish("v", "a"))
		one := pools.NodePublication{Volume: "v", Staging: "/staging/v", Target: podPath("v", "b"), OneTarget: true}
		h.want(h.node.Publish(h.bounded(), one), volume.ErrOtherTarget, "publish for a second pod")
		h.must(h.unpublish("v", "a"))
		h.must(h.unstage("v"))
		h.locked(func() { h.mounts = append(h.mounts, attach.Mount{Target: "/staging/v", Source: "stranger"}) })
		h.want(h.unstage("v"), volume.ErrForeignMount, "unstage what is another's")
		h.want(h.unpublish("v", "../staging/v"), nil, "unpublish where nothing is")
		h.locked(func() { h.mounts = nil })
	})
}

// TestCopiesOfMountsAreNone: the host's root shows each mount once more.
func TestCopiesOfMountsAreNone(t *testing.T) {
	inWorld(t, func(h *harness) {
		h.must(h.create("v", gib))
		h.locked(func() { h.mounts = append(h.mounts, attach.Mount{Target: "/host/staging/v", Root: "/pool/volumes/v"}) })
		h.must(h.remove("v"))
		h.locked(func() { h.mounts = nil })
	})
}

// TestMany calls at once: nothing is made twice, and nothing is left.
func TestMany(t *testing.T) {
	inWorld(t, func(h *harness) {
		var wg sync.WaitGroup
		for i := range 50 {
			for range 3 {
				wg.Go(func() {
					name := fmt.Sprintf("v%d", i)
					_ = h.create(name, sizeUnit)
					_ = h.stage(name)
					_ = h.publish(name, "a")
					_ = h.unpublish(name, "a")
					_ = h.unstage(name)
					_ = h.remove(name)
				})
			}
		}
		wg.Wait()
		synctest.Wait()
		for i := range 50 {
			name := fmt.Sprintf("v%d", i)
			h.must(h.unpublish(name, "a"))
			h.must(h.unstage(name))
			h.must(h.remove(name))
		}
		h.pass(time.Second)
		if left := h.leftovers(); len(left) > 0 {
			h.Errorf("left: %q", left)
		}
		if all, err := h.node.Pools(h.bounded()); err != nil || all[0].Provisioned != 0 {
			h.Errorf("pools %+v, %v", all, err)
		}
	})
}
