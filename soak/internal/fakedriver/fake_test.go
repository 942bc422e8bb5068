package fakedriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/soak/internal/misuse"
	"github.com/katbox/katbox/soak/internal/mounttest"
	"github.com/katbox/katbox/soak/testbed"
)

// node is a driver and what a kubelet has of it.
type node struct {
	t      *testing.T
	cfg    Config
	driver *Driver
	client csi.NodeClient
}

// newNode starts a driver in a directory of its own, which may be a small disk.
func newNode(t *testing.T, disk bool, change func(*Config)) *node {
	t.Helper()
	mounttest.Need(t)
	dir, err := os.MkdirTemp("", "fake") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, cfg: Config{
		Socket: filepath.Join(dir, "s"), Work: filepath.Join(dir, "work"), Kubelet: filepath.Join(dir, "kubelet"),
		Lifespan: time.Hour, OrphanGrace: 50 * time.Millisecond, PruneInterval: 20 * time.Millisecond,
		Outside: filepath.Join(dir, "outside"),
	}}
	if disk {
		n.try(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"))
	}
	for _, d := range []string{n.cfg.Work, n.cfg.Outside, filepath.Join(n.cfg.Kubelet, "pods")} {
		n.try(os.MkdirAll(d, 0o755))
	}
	t.Cleanup(func() { mounttest.ClearAway(t, dir) })
	if change != nil {
		change(&n.cfg)
	}
	if n.driver, err = New(n.cfg); err != nil {
		t.Fatal(err)
	}
	n.try(n.driver.Start(t.Context()))
	t.Cleanup(func() { _ = n.driver.Kill() }) // it may have ended
	conn, err := testbed.Dial(n.cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	n.client = csi.NewNodeClient(conn)
	return n
}

func (n *node) try(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) data(id string) string { return filepath.Join(n.cfg.Work, "pod-"+id, id) }

func (n *node) target(id string) string {
	return filepath.Join(n.cfg.Kubelet, "pods", "pod-"+id, "mount")
}

func (n *node) publish(id string, readOnly bool) codes.Code {
	n.t.Helper()
	return n.publishAs(id, readOnly, nil)
}

// publishWith publishes a volume with an attribute.
func (n *node) publishWith(id, key, value string) codes.Code {
	n.t.Helper()
	return n.publishAs(id, false, map[string]string{key: value})
}

func (n *node) publishAs(id string, readOnly bool, attributes map[string]string) codes.Code {
	n.t.Helper()
	n.try(os.MkdirAll(filepath.Dir(n.target(id)), 0o755))
	request := testbed.Publish(id, n.target(id), "pod-"+id, attributes)
	request.Readonly = readOnly
	_, err := n.client.NodePublishVolume(n.t.Context(), request, grpc.WaitForReady(true))
	return status.Code(err)
}

func (n *node) unpublish(id string) codes.Code {
	n.t.Helper()
	_, err := n.client.NodeUnpublishVolume(n.t.Context(), testbed.Unpublish(id, n.target(id)), grpc.WaitForReady(true))
	return status.Code(err)
}

// is fails the test if a call was answered otherwise.
func (n *node) is(got, want codes.Code) {
	n.t.Helper()
	if got != want {
		n.t.Fatalf("answered %s, want %s", got, want)
	}
}

// retain makes a retained volume with a file in it.
func (n *node) retain(id string) {
	n.t.Helper()
	n.is(n.publish(id, false), codes.OK)
	n.try(os.WriteFile(filepath.Join(n.target(id), "file"), []byte("x"), 0o644))
	n.is(n.unpublish(id), codes.OK)
}

// await waits until something is so; the test's own limit is the only one.
func (n *node) await(what string, so func() bool) {
	n.t.Helper()
	for !so() {
		if retry.Pause(n.t.Context(), time.Millisecond) != nil {
			n.t.Fatalf("%s never came", what)
		}
	}
}

func (n *node) awaitGone(path string) {
	n.t.Helper()
	n.await(path+" gone", func() bool { return !exists(path) })
}

func TestPublishAndUnpublish(t *testing.T) {
	n := newNode(t, false, nil)
	for range 2 {
		n.is(n.publish("a", false), codes.OK)
	}
	n.try(os.WriteFile(filepath.Join(n.target("a"), "file"), []byte("x"), 0o644))
	if !mounted(n.target("a")) || !exists(filepath.Join(n.data("a"), "file")) {
		t.Error("what is written at the target is not in the data directory")
	}
	for range 2 {
		n.is(n.unpublish("a"), codes.OK)
	}
	if exists(n.target("a")) || !exists(filepath.Join(n.data("a"), "file")) {
		t.Error("after the unpublish the target is there or the data is not")
	}
	if n.driver.disk.retained() != 1 {
		t.Error("the volume is not retained")
	}
	n.is(n.publish("r", true), codes.OK)
	if err := os.WriteFile(filepath.Join(n.target("r"), "file"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing to a read-only volume: %v, want EROFS", err)
	}
	n.try(n.driver.Stop())
}

func TestBusyTarget(t *testing.T) {
	n := newNode(t, false, nil)
	n.is(n.publish("a", false), codes.OK)
	f, err := os.Create(filepath.Join(n.target("a"), "file"))
	n.try(err)
	n.is(n.unpublish("a"), codes.Aborted)
	n.try(f.Close())
	n.is(n.unpublish("a"), codes.OK)
}

func TestExpiry(t *testing.T) {
	n := newNode(t, false, func(c *Config) { c.Lifespan = 100 * time.Millisecond })
	began := time.Now()
	n.retain("a")
	n.awaitGone(filepath.Dir(n.data("a")))
	if kept := time.Since(began); kept < n.cfg.Lifespan {
		t.Errorf("gone after %s, want no earlier than %s", kept, n.cfg.Lifespan)
	}
	n.await("empty trash", func() bool {
		left, err := os.ReadDir(filepath.Join(n.cfg.Work, trashName))
		n.try(err)
		return len(left) == 0
	})
}

func TestKill(t *testing.T) {
	n := newNode(t, false, nil)
	n.is(n.publish("a", false), codes.OK)
	n.retain("b")
	before, _ := n.driver.disk.get("b")
	n.try(n.driver.Kill())
	if err := n.driver.Kill(); err == nil {
		t.Error("a dead driver can be killed")
	}
	n.try(n.driver.Start(t.Context()))
	after, _ := n.driver.disk.get("b")
	if !mounted(n.target("a")) || !after.unpublished.Equal(before.unpublished) {
		t.Error("a kill unmounted a volume or moved a deadline")
	}
	// A call that is sent before the end of the connection is noticed is lost.
	n.await("a new connection", func() bool { return n.publish("a", false) == codes.OK })
	n.is(n.unpublish("a"), codes.OK)
}

func TestEviction(t *testing.T) {
	n := newNode(t, true, func(c *Config) { c.Headroom = 0.5 })
	for _, id := range []string{"a", "b", "c"} {
		n.retain(id)
		n.try(os.WriteFile(filepath.Join(n.data(id), "big"), make([]byte, 500<<10), 0o644))
	}
	ballast := filepath.Join(n.cfg.Work, ".ballast")
	err := os.WriteFile(ballast, make([]byte, 4<<20), 0o644) // as much as there is room for, or comes free meanwhile
	if err != nil && !errors.Is(err, unix.ENOSPC) {
		t.Fatal("fill the disk:", err)
	}
	n.awaitGone(n.data("a"))
	n.try(os.Remove(ballast))
	if exists(n.data("b")) != exists(n.data("c")) && !exists(n.data("c")) {
		t.Error("the newest volume was evicted before an older one")
	}
}

// TestEvictionOfWhatIsRead: readers have more volumes open in a row than tell that deletions make no room, and would hold the
// next one until it goes. What takes next to nothing tells nothing, and goes.
func TestEvictionOfWhatIsRead(t *testing.T) {
	n := newNode(t, true, func(c *Config) { c.Headroom = 0.5 })
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		n.retain(id)
		f, err := os.Open(filepath.Join(n.data(id), "file"))
		n.try(err)
		defer f.Close()
	}
	n.fill()
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		n.awaitGone(n.data(id))
	}
}

// TestEvictionOfWhatIsStreamed: people have more large volumes open in a row, through the driver, than tell that deletions make no
// room, and hold the next one until it goes. Their streams end with the volumes, which makes room.
func TestEvictionOfWhatIsStreamed(t *testing.T) {
	n := newNode(t, true, func(c *Config) { c.AdminSocket, c.Headroom, c.PruneInterval = c.Socket+"a", 0.5, time.Hour })
	client := api.Dial(n.cfg.AdminSocket)
	defer client.Close()
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for _, id := range ids {
		n.retain(id)
		n.try(os.WriteFile(filepath.Join(n.data(id), "big"), make([]byte, 100<<10), 0o644))
		n.try(os.Truncate(filepath.Join(n.data(id), "file"), 64<<20))
		stream, err := client.Bytes(t.Context(), id, api.BytesQuery{Path: "file"})
		n.try(err)
		defer stream.Close()
	}
	n.fill()
	n.driver.run.evict(t.Context(), &vain{})
	for _, id := range ids {
		if exists(n.data(id)) {
			t.Errorf("%s is still there", id)
		}
	}
}

// TestEvictionInVain: volumes of some size that a process has open make no room, and then no more of them go until it closes them.
func TestEvictionInVain(t *testing.T) {
	n := newNode(t, true, func(c *Config) { c.Headroom, c.PruneInterval = 0.5, time.Hour })
	var files []*os.File
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for _, id := range ids {
		n.retain(id)
		n.try(os.WriteFile(filepath.Join(n.data(id), "big"), make([]byte, 100<<10), 0o644))
		f, err := os.Open(filepath.Join(n.data(id), "big"))
		n.try(err)
		files = append(files, f)
	}
	n.fill()
	left := func() (left []string) {
		for _, id := range ids {
			if exists(n.data(id)) {
				left = append(left, id)
			}
		}
		return left
	}
	var inVain vain
	for range 2 {
		n.driver.run.evict(t.Context(), &inVain)
		if got := left(); !slices.Equal(got, ids[3:]) {
			t.Errorf("while files are open there are %v, want %v", got, ids[3:])
		}
	}
	for _, f := range files {
		n.try(f.Close())
	}
	n.fill()
	n.driver.run.evict(t.Context(), &inVain)
	if got := left(); len(got) > 0 {
		t.Errorf("without open files there are %v", got)
	}
}

// TestEvictionPassesOver: what asks to be kept for longer does not keep what is due.
func TestEvictionPassesOver(t *testing.T) {
	n := newNode(t, true, func(c *Config) { c.Headroom, c.MaxLifespan, c.PruneInterval = 0.5, 24*time.Hour, time.Hour })
	n.is(n.publishWith("a", "lifespan", "24h"), codes.OK)
	n.is(n.unpublish("a"), codes.OK)
	n.retain("b")
	for _, id := range []string{"a", "b"} {
		v, _ := n.driver.disk.get(id)
		v.unpublished = v.unpublished.Add(-50 * time.Minute)
		n.driver.disk.put(v)
	}
	// Three quarters of the headroom are free, which halves the lifespans.
	n.try(os.WriteFile(filepath.Join(n.cfg.Work, ".ballast"), make([]byte, 5<<19), 0o644))
	n.driver.run.evict(t.Context(), &vain{})
	if !exists(n.data("a")) || exists(n.data("b")) {
		t.Errorf("the volume that is kept for longer is there: %t; the one that is due: %t", exists(n.data("a")), exists(n.data("b")))
	}
}

// TestEvictionBesideWhatStays: a volume that cannot be deleted, as something is mounted in it, keeps no other one.
func TestEvictionBesideWhatStays(t *testing.T) {
	n := newNode(t, true, func(c *Config) { c.Headroom = 0.5 })
	for _, id := range []string{"a", "b"} {
		n.retain(id)
	}
	inside := filepath.Join(n.data("a"), "dir")
	n.try(os.Mkdir(inside, 0o755))
	n.try(unix.Mount(n.cfg.Outside, inside, "", unix.MS_BIND, ""))
	n.fill()
	n.awaitGone(n.data("b"))
	n.try(unmount(inside))
	n.awaitGone(n.data("a"))
}

func TestFullDisk(t *testing.T) {
	n := newNode(t, true, nil)
	n.is(n.publish("a", false), codes.OK)
	n.try(os.MkdirAll(filepath.Dir(n.target("b")), 0o755))
	err := os.WriteFile(filepath.Join(n.target("a"), "big"), make([]byte, 5<<20), 0o644)
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill the disk: %v, want ENOSPC", err)
	}
	n.is(n.unpublish("a"), codes.OK)
}

func TestOrphans(t *testing.T) {
	n := newNode(t, false, func(c *Config) { c.Lifespan = 100 * time.Millisecond })
	n.is(n.publish("a", false), codes.OK)
	n.try(unmount(n.target("a")))
	n.try(os.RemoveAll(filepath.Dir(n.target("a"))))
	unknown := filepath.Join(n.cfg.Work, "pod-u", "u")
	n.try(os.MkdirAll(unknown, 0o755))
	n.awaitGone(n.data("a"))
	n.awaitGone(unknown)
}

// TestContained has everything through which a deletion could get outside.
func TestContained(t *testing.T) {
	for _, bug := range []Bug{"", FollowsLinks, EntersMounts, FollowsVolumeLink} {
		t.Run("bug: "+string(bug), func(t *testing.T) {
			n := newNode(t, false, func(c *Config) { c.Lifespan, c.Bug = 5*time.Second, bug })
			canary := filepath.Join(n.cfg.Outside, "dir", "canary")
			n.try(os.Mkdir(filepath.Dir(canary), 0o755))
			n.try(os.WriteFile(canary, []byte("x"), 0o644))
			for _, id := range []string{"link", "mount", "volume"} {
				n.retain(id)
			}
			n.try(os.Symlink(filepath.Dir(canary), filepath.Join(n.data("link"), "link")))
			n.try(os.Mkdir(filepath.Join(n.data("mount"), "dir"), 0o755))
			n.try(unix.Mount(filepath.Dir(canary), filepath.Join(n.data("mount"), "dir"), "", unix.MS_BIND, ""))
			n.try(os.RemoveAll(n.data("volume")))
			n.try(os.Symlink(filepath.Dir(canary), n.data("volume")))

			n.awaitGone(n.data("link"))
			n.await("end of the symlink", func() bool { _, known := n.driver.disk.get("volume"); return !known })
			switch bug {
			case "":
				if !exists(filepath.Join(n.data("mount"), "file")) {
					t.Error("a volume with a mount inside was not left alone")
				}
				n.try(unmount(filepath.Join(n.data("mount"), "dir")))
				n.awaitGone(n.data("mount"))
			case EntersMounts:
				n.awaitGone(canary)
			}
			if exists(canary) != (bug == "") {
				t.Errorf("the canary is there: %t", exists(canary))
			}
		})
	}
}

func TestWallClock(t *testing.T) {
	for _, bug := range []Bug{"", TrustsWallClock} {
		n := newNode(t, false, func(c *Config) { c.Bug = bug })
		n.retain("a")
		n.driver.SetClock(2 * time.Hour)
		if bug != "" {
			n.awaitGone(n.data("a"))
			continue
		}
		n.retain("b")
		known, _ := n.driver.disk.get("a")
		if run := n.driver.run; run.age(known) > time.Minute || !exists(n.data("a")) {
			t.Errorf("the clock made the volume %s old", run.age(known))
		}
	}
}

// TestBadInput: each bad call gets the answer that it should get, unless that
// is the bug. What the bugs answer leaves nothing behind.
func TestBadInput(t *testing.T) {
	for _, bug := range []Bug{"", TakesAnyID, AnswersVaguely} {
		n := newNode(t, false, func(c *Config) { c.Bug = bug })
		site, err := misuse.NewSite(n.cfg.Kubelet, n.cfg.Work)
		n.try(err)
		conn, err := testbed.Dial(n.cfg.Socket)
		n.try(err)
		objections := 0
		for pick := range misuse.Number() {
			if a := misuse.Send(t.Context(), conn, uint64(pick), site); a.Objection != "" {
				objections++
				if bug == "" {
					t.Error(a.Objection)
				}
			}
		}
		if bug != "" && objections < 10 {
			t.Errorf("%s: %d objections to %d bad calls, want 10 at least", bug, objections, misuse.Number())
		}
		n.try(site.Traces())
		n.try(site.Close())
		n.try(conn.Close())
	}
}

func TestCrash(t *testing.T) {
	n := newNode(t, false, func(c *Config) { c.Bug = Crashes })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_, _ = n.client.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{}) // until it is dead
		}
	}()
	if err := <-n.driver.Died(); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("it died of %v, want a panic", err)
	}
}

func TestBugs(t *testing.T) {
	if len(Bugs()) != len(breaks) || len(Bugs()) < 20 {
		t.Errorf("%d bugs", len(Bugs()))
	}
	for _, b := range Bugs() {
		if b.Breaks() == "" {
			t.Errorf("%q breaks nothing", b)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a driver without a socket can be made")
	}
}
