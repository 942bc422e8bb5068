package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/link/wire"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/roottest"
	"github.com/katbox/katbox/internal/testing/uplinktest"
	"github.com/katbox/katbox/soak/testbed"
)

// controllerEnd is the controller's end of the daemon's connections. Requests go over the newest.
type controllerEnd struct {
	mu   sync.Mutex
	node *uplinktest.Node
}

// take takes a connection of the daemon, and listens to what it tells until that has ended.
func (c *controllerEnd) take(ctx context.Context, conn net.Conn, ca *uplinktest.Authority, t *testing.T) {
	n, err := uplinktest.Take(ctx, conn, ca.Leaf(t, "localhost"))
	if err != nil {
		return
	}
	summary, err := n.Ask(http.MethodGet, api.SummaryPath, nil)
	if err != nil {
		return
	}
	defer summary.Body.Close()
	c.become(n)
	_, _ = io.Copy(io.Discard, summary.Body) // the daemon is gone
	c.become(nil)
}

func (c *controllerEnd) become(n *uplinktest.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node = n
}

func (c *controllerEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	n := c.node
	c.mu.Unlock()
	if n == nil {
		return nil, fmt.Errorf("%w: the node is away", volume.ErrUnavailable)
	}
	return n.Client.RoundTrip(r)
}

// localCrash is a daemon with crash points and a pool, with what the controller and the kubelet ask of it.
type localCrash struct {
	*daemon
	*stepCrash
	local.Pools
	csi     csi.NodeClient
	backend string
	uuid    string
	disk    string
}

func newLocalCrash(t *testing.T, binary, fsType, backend string) *localCrash {
	t.Helper()
	ca, end := uplinktest.NewAuthority(t), &controllerEnd{}
	address := listenAsGateway(t, func(conn net.Conn) { end.take(t.Context(), conn, ca, t) })
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	c := &localCrash{daemon: newDaemon(t), Pools: wire.NewClient("node-1", end), backend: backend}
	c.disk = filepath.Join(roottest.FileSystem(t, fsType, 4096), "pool")
	for name, content := range map[string][]byte{"token": []byte("token"), "ca.crt": ca.PEM} {
		must(t, os.WriteFile(filepath.Join(c.dir, name), content, 0o600))
	}
	socket := filepath.Join(c.dir, "local", "csi.sock")
	c.flags = append(c.flags, "--local-pool", "fast="+c.disk+",backend="+backend, "--local-endpoint", "unix://"+socket,
		"--controller", "localhost:"+port, "--controller-ca", filepath.Join(c.dir, "ca.crt"), "--controller-token", filepath.Join(c.dir, "token"))
	c.csi = nodeClient(t, socket)
	// There is no inline volume, and so no other point than those of this pool, except at the start.
	c.stepCrash = newStepCrash(c.daemon, binary, func(string) bool { return true })
	c.stepCrash.ready = func() error {
		all, err := c.Pools.Pools(t.Context())
		if err == nil && (len(all) != 1 || all[0].Failed != "") {
			err = fmt.Errorf("the pools are %+v", all)
		}
		if err == nil {
			c.uuid = all[0].UUID
		}
		return err
	}
	c.repeat("find the pool", c.stepCrash.ready)
	return c
}

const crashSize = 320 * mebi

func (c *localCrash) make(name string, from local.Source) func() error {
	return call(func(ctx context.Context) error {
		v, err := c.CreateVolume(ctx, c.uuid, local.NewVolume{Name: name, Size: crashSize, FSType: "xfs", Source: from})
		if err == nil && (!v.Ready || v.Size < crashSize) {
			err = fmt.Errorf("made %+v", v)
		}
		return err
	})
}

// volume is the kubelet's side of a volume.
func (c *localCrash) volume(id string) testbed.Staged {
	return localVolume(c.csi, c.dir, c.uuid, id, false)
}

func (c *localCrash) stage(id string) func() error { return call(c.volume(id).Stage) }

func (c *localCrash) publish(id string) func() error { return call(c.volume(id).Publish) }

func (c *localCrash) unpublish(id string) func() error { return call(c.volume(id).Unpublish) }

func (c *localCrash) unstage(id string) func() error { return call(c.volume(id).Unstage) }

// remove deletes a volume, and waits until its room is free.
func (c *localCrash) remove(id string) func() error {
	return call(func(ctx context.Context) error {
		if err := c.DeleteVolume(ctx, c.uuid, id); err != nil {
			return err
		}
		return c.erased()
	})
}

// erased waits until the trash is empty. A daemon that was killed does not empty it.
func (c *localCrash) erased() error {
	late := time.After(10 * time.Second)
	for {
		left, err := os.ReadDir(filepath.Join(c.disk, ".trash"))
		if len(left) == 0 || err != nil && !os.IsNotExist(err) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-c.process.Ended():
			return fmt.Errorf("the daemon has ended, and %d are left in the trash", len(left))
		case <-late:
			return fmt.Errorf("%d are left in the trash", len(left))
		}
	}
}

func (c *localCrash) comment(id, text string) func() error {
	return call(func(ctx context.Context) error {
		_, err := c.CommentVolume(ctx, c.uuid, id, text)
		return err
	})
}

// read reads what is retained, as a person does.
func (c *localCrash) read(id, want string) func() error {
	return call(func(ctx context.Context) error {
		stream, err := c.admin().Bytes(ctx, id, api.BytesQuery{Path: "file"})
		if err != nil {
			return err
		}
		defer stream.Close()
		got, err := io.ReadAll(stream)
		if err == nil && string(got) != want {
			err = fmt.Errorf("read %q of %s, want %q", got, id, want)
		}
		return err
	})
}

// inOrder does one thing after the other, until one fails.
func inOrder(all ...func() error) func() error {
	return func() error {
		for _, do := range all {
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	}
}

// holds uses a volume that is not staged, and checks what is in it.
func (c *localCrash) holds(id, want string) func() error {
	target := c.volume(id).Target()
	return inOrder(c.stage(id), c.publish(id), func() error {
		got, err := os.ReadFile(filepath.Join(target, "file"))
		if want == "" && os.IsNotExist(err) {
			err = os.WriteFile(filepath.Join(target, "file"), []byte("x"), 0o600)
		} else if err == nil && string(got) != want {
			err = fmt.Errorf("%s has %q, want %q", id, got, want)
		}
		return err
	}, c.unpublish(id), c.unstage(id))
}

// promised checks that the pool has promised room for so many times the size, and has so many records.
func (c *localCrash) promised(records int, bytes int64) func() error {
	return func() error {
		all, err := c.Pools.Pools(c.t.Context())
		if err != nil {
			return err
		}
		names, err := filepath.Glob(filepath.Join(c.disk, "records", "[^.]*"))
		if err == nil && (all[0].Provisioned != bytes || len(names) != records) {
			err = fmt.Errorf("%d bytes are promised, and there are %d records, want %d and %d", all[0].Provisioned, len(names), bytes, records)
		}
		return err
	}
}

// TestLocalCrashAtEveryStep kills the daemon at each point that the calls of the controller and the kubelet reach for a
// volume on the node's disk. What was made is whole, what was deleted is gone, and in the end nothing is left.
func TestLocalCrashAtEveryStep(t *testing.T) {
	roottest.Need(t)
	binary := buildCrashing(t)
	var mu sync.Mutex
	met := map[string]bool{}
	var running sync.WaitGroup
	for _, on := range []struct{ fsType, backend string }{{"xfs", "image"}, {"btrfs", "btrfs"}} {
		running.Go(func() {
			t.Run(on.backend, func(t *testing.T) {
				c := newLocalCrash(t, binary, on.fsType, on.backend)
				c.playVolume()
				wantNothingLocal(t, c.disk)
				must(t, c.promised(0, 0)())
				t.Logf("%d crashes at %d points", c.played, len(c.met))
				if c.played < 40 && !testing.Short() {
					t.Errorf("only %d crashes", c.played)
				}
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(met, c.met)
			})
		})
	}
	running.Wait()
	if !t.Failed() {
		for _, wrong := range compare(pointsBelow(t, "../../", "internal/node/localdisk", "actors/local"), met, localOutOfReach) {
			t.Error(wrong)
		}
	}
}

// localOutOfReach are the points that no step of TestLocalCrashAtEveryStep reaches, and why.
var localOutOfReach = map[string]string{
	"localdisk.Pool.canAttach/Truncate":        "when a pool is made or opened, and while images can have no loop device",
	"localdisk.Pool.canImages/Fallocate":       "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.canShare/Clone":            "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.onlyFile/Renameat":         "of what a person has put in the place of the spare file or the reserve",
	"localdisk.Pool.openDirectory/MkdirAll":    "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.openPart/Create":           "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.openPart/Mkdirat":          "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.openPart/Sync":             "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.openParts/Sync":            "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.giveUp/Truncate":           "on a full disk",
	"localdisk.Pool.makeSpare/Renameat":        "on a disk without inodes; TestCrashWithoutInodes of internal/node/localdisk ends it there",
	"localdisk.Pool.refill/Create":             "when a pool is made or opened",
	"localdisk.Pool.refill/Fallocate":          "when a pool is made or opened, and after its disk was full",
	"localdisk.Pool.refill/Sync":               "when a pool is made or opened, and after its disk was full",
	"localdisk.Pool.refill/Truncate":           "on a full disk",
	"localdisk.Pool.setAside/Renameat":         "of a record that is damaged",
	"localdisk.Pool.setAside/Sync":             "of a record that is damaged",
	"localdisk.Pool.swap/Exchange":             "on a disk without room; TestCrashWithoutInodes of internal/node/localdisk ends it there",
	"localdisk.Pool.swap/Sync":                 "on a disk without room",
	"localdisk.Pool.swap/Truncate":             "on a disk without room",
	"localdisk.Pool.swap/WriteAt":              "on a disk without room",
	"localdisk.Pool.trial/Create":              "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.Pool.trial/Unlinkat":            "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.attachOne/LoopClear":            "of a loop device that another took",
	"localdisk.detach/LoopClear":               "of a block device",
	"localdisk.directories.create/Sync":        "where the file system has project quotas",
	"localdisk.images.enlarge/Truncate":        "on a disk without room for the growth",
	"localdisk.images.newImage/SetFlags":       "of images on btrfs",
	"localdisk.images.noRoom/Truncate":         "on a full disk",
	"localdisk.images.openKept/MountAgain":     "at a start after a crash between freeze and thaw, and an unstage before the pool was open",
	"localdisk.images.share/Clone":             "of what no pod uses, and of block devices",
	"localdisk.images.thawImage/Thaw":          "at a start after a crash between freeze and thaw",
	"localdisk.openNode/MakeBlockDevice":       "where /dev is no devtmpfs; TestStaticDev",
	"localdisk.removeUnfinished/Unlinkat":      "at a start after a crash",
	"localdisk.simpleQuotas/EnableQuotaGroups": "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.syncDirectory/Sync":             "when a pool is made or opened; the tests of internal/node/localdisk end it there",
	"localdisk.writeFile/Unlinkat":             "after a write that has failed",
}

// playVolume plays all calls for a volume, each with a crash at each of its points. No other pool ever had volumes of
// these names: what uses a loop device of a volume of that name holds up an unstage, and a run that was killed between
// freeze and thaw leaves one for ever.
func (c *localCrash) playVolume() {
	t := c.t
	const data = "data"
	run := fmt.Sprintf("%s-%x-", c.backend, rand.Uint64())
	origin, other, copied := run+"1", run+"2", run+"3"
	size := int64(crashSize)
	c.play(crashStep{name: "make", prepare: nothing, call: c.make(other, local.Source{}), after: inOrder(
		c.holds(other, ""), c.promised(1, size), c.remove(other), c.promised(0, 0))})
	must(t, c.make(origin, local.Source{})())
	c.play(crashStep{name: "stage", prepare: nothing, call: c.stage(origin), after: c.unstage(origin)})
	c.play(crashStep{name: "unstage", prepare: c.stage(origin), call: c.unstage(origin), after: nothing})
	must(t, c.stage(origin)())
	c.play(crashStep{name: "publish", prepare: nothing, call: c.publish(origin), after: c.unpublish(origin)})
	c.play(crashStep{name: "unpublish", prepare: c.publish(origin), call: c.unpublish(origin), after: nothing})
	must(t, c.publish(origin)())
	target := c.volume(origin).Target()
	must(t, os.WriteFile(filepath.Join(target, "file"), []byte(data), 0o600))
	c.play(crashStep{name: "grow", prepare: func() error { size += 16 * mebi; return nil }, call: call(func(ctx context.Context) error {
		if _, err := c.GrowVolume(ctx, c.uuid, origin, size); err != nil {
			return err
		}
		got, err := c.volume(origin).Expand(ctx, size)
		if err == nil && got != size {
			err = fmt.Errorf("expanded to %d, want %d", got, size)
		}
		return err
	}), after: func() error { return c.promised(1, size)() }})
	take := call(func(ctx context.Context) error {
		s, err := c.CreateSnapshot(ctx, c.uuid, "snap", origin)
		if err == nil && (!s.Ready || s.Volume != origin) {
			err = fmt.Errorf("took %+v", s)
		}
		return err
	})
	untake := inOrder(call(func(ctx context.Context) error { return c.DeleteSnapshot(ctx, c.uuid, "snap") }), c.erased)
	clone := func(from local.Source) func() error {
		return call(func(ctx context.Context) error {
			_, err := c.CreateVolume(ctx, c.uuid, local.NewVolume{Name: copied, Size: size, Source: from})
			return err
		})
	}
	restored := inOrder(clone(local.Source{Snapshot: "snap"}), c.holds(copied, data), c.remove(copied))
	c.play(crashStep{name: "snapshot", prepare: nothing, call: take, after: inOrder(c.promised(2, 2*size), restored, untake)})
	c.play(crashStep{name: "clone", prepare: nothing, call: clone(local.Source{Volume: origin}), after: inOrder(
		c.promised(2, 2*size), c.holds(copied, data), c.remove(copied))})
	c.play(crashStep{name: "delete a snapshot", prepare: take, call: untake, after: c.promised(1, size)})
	must(t, inOrder(c.unpublish(origin), c.unstage(origin))())
	retained := pools.Comment{Retained: &pools.Retention{Since: time.Now(), Until: time.Now().Add(time.Hour)}}.String()
	c.play(crashStep{name: "retain", prepare: nothing, call: c.comment(origin, retained), after: func() error {
		if err := c.stage(origin)(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "is retained since") {
			return fmt.Errorf("stage what is retained: %w", err)
		}
		return c.comment(origin, "mine")()
	}})
	c.play(crashStep{name: "restore", prepare: c.comment(origin, retained), call: c.comment(origin, ""), after: c.holds(origin, data)})
	c.play(crashStep{name: "read", prepare: c.comment(origin, retained), call: c.read(origin, data), after: inOrder(
		c.comment(origin, ""), c.holds(origin, data))})
	c.play(crashStep{name: "delete", prepare: c.make(other, local.Source{}), call: c.remove(other), after: c.promised(1, size)})
	must(t, c.remove(origin)())
}
