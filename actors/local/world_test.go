package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/beneath"
	"github.com/katbox/katbox/internal/node/files"
	"github.com/katbox/katbox/internal/node/localdisk"
)

const gib = 1 << 30

// The pools of the tests.
const (
	fast = "11111111-1111-4111-8111-111111111111"
	slow = "22222222-2222-4222-8222-222222222222"
)

// errKilled is what a call comes to whose daemon was killed: nothing has heard of it.
var errKilled = errors.New("the daemon was killed")

var errUnread = errors.New("input/output error")

// world is what outlives a daemon: the disks and the kernel of a node, in memory. It says what a daemon must never do.
type world struct {
	t  testing.TB
	mu sync.Mutex
	// life is the number of the daemon that runs; the calls of earlier ones do nothing.
	life int
	// steps counts the changes of this daemon's life, before and after each; it is killed at the killAt-th.
	steps, killAt int
	// changed is closed when something that calls wait for may have changed.
	changed chan struct{}
	// fail, where it is set, makes a call fail.
	fail func(call, name string) error

	// shown are the volumes that are shown to readers: the kernel ends that with the daemon. held are those of which
	// readers have files open, slow those that take their time to be mounted. shows counts all that were shown, most how
	// many were at a time.
	shown, held, slow map[string]bool
	shows, most       int

	disks  map[string]*disk // by path
	mounts []attach.Mount
	paths  map[string]bool
	// appeared counts the calls of Config.Changed.
	appeared int
	figures  map[string]local.Counts
	ups      map[string]bool
}

// disk is one that a pool is on.
type disk struct {
	is      local.Pool
	records map[string]local.Record
	// data is what was made, by name: the size, or 0 where that is a part.
	data map[string]int64
	// from is what the data was made from.
	from  map[string]string
	trash []string
	// unread is a record that cannot be read.
	unread string
	// away: it is not there. hangs: it does not answer. copies hang while holds is set. readOnly: it takes no writes.
	away, hangs, holds, readOnly bool
	opens                        int
	open                         map[int]bool
}

func newDisk(uuid string) *disk {
	return &disk{
		is: local.Pool{
			UUID: uuid, Backend: local.Image, FSType: "xfs", HardLimit: true, Block: true, Copies: true, Total: 10 * gib, Free: 10 * gib,
		},
		records: map[string]local.Record{}, data: map[string]int64{}, from: map[string]string{}, open: map[int]bool{},
	}
}

// daemon is one life of a daemon, as what its Node calls.
type daemon struct {
	*world
	life int
}

// locked changes the world as a test wants it, or looks at it. What waits looks again.
func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.wake()
}

func (w *world) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) forbid(format string, about ...any) {
	w.t.Helper()
	w.t.Errorf("forbidden: "+format, about...)
}

// change makes a change of the world, unless the daemon is killed before; it may be killed after it.
func (d *daemon) change(call, name string, do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dies() {
		return errKilled
	}
	if d.fail != nil {
		if err := d.fail(call, name); err != nil {
			return err
		}
	}
	err := do()
	if d.dies() {
		return errKilled
	}
	return err
}

func (d *daemon) dies() bool {
	if d.life != d.world.life {
		return true
	}
	d.steps++
	if d.steps == d.killAt {
		d.world.life++
		d.wake()
		return true
	}
	return false
}

// wait blocks while a condition holds, as a system call does.
func (d *daemon) wait(ctx context.Context, while func() bool) error {
	for {
		d.mu.Lock()
		dead, waits, changed := d.life != d.world.life, while(), d.changed
		d.mu.Unlock()
		switch {
		case dead:
			return errKilled
		case !waits:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Open opens a pool.
func (d *daemon) Open(ctx context.Context, place Place) (localdisk.Dir, error) {
	on := d.disks[place.Path]
	if err := d.wait(ctx, func() bool { return on.hangs }); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.life != d.world.life:
		return nil, errKilled
	case on.away:
		return nil, fmt.Errorf("%w: nothing is mounted at %s", volume.ErrUnavailable, place.Path)
	case on.open[d.life]:
		return nil, fmt.Errorf("%w: another process has it open", volume.ErrUnavailable)
	}
	on.opens++
	on.open[d.life] = true
	return &dir{daemon: d, disk: on}, nil
}

// dir is a pool's directory that was opened.
type dir struct {
	*daemon
	disk   *disk
	closed bool
}

var _ localdisk.Dir = (*dir)(nil)

func (d *dir) there() error {
	switch {
	case d.life != d.world.life:
		return errKilled
	case d.closed:
		d.forbid("a pool is used after it was closed")
	case d.disk.away:
		return fmt.Errorf("%w: the disk is away", volume.ErrUnavailable)
	}
	return nil
}

func (d *dir) read(do func() error) error {
	if err := d.wait(context.Background(), func() bool { return d.disk.hangs }); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.there(); err != nil {
		return err
	}
	return do()
}

func (d *dir) write(call, name string, do func() error) error {
	if err := d.wait(context.Background(), func() bool { return d.disk.hangs }); err != nil {
		return err
	}
	return d.change(call, name, func() error {
		if err := d.there(); err != nil {
			return err
		}
		switch {
		case d.disk.readOnly && call == "save":
			return fmt.Errorf("%w: %w", local.ErrUnwritable, unix.EROFS)
		case d.disk.readOnly:
			return unix.EROFS
		}
		return do()
	})
}

func (d *dir) Describe() local.Pool { return d.disk.is }

func (d *dir) Look() (total, free int64, err error) {
	err = d.read(func() error {
		total, free = d.disk.is.Total, d.disk.is.Free
		if d.disk.readOnly {
			return fmt.Errorf("%w: %w", local.ErrUnwritable, unix.EROFS)
		}
		return nil
	})
	return total, free, err
}

func (d *dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.forbid("a pool is closed twice")
	}
	d.closed = true
	delete(d.disk.open, d.life)
	return nil
}

func (d *dir) Records() (all []local.Record, err error) {
	err = d.read(func() error {
		for name, r := range d.disk.records {
			if name == d.disk.unread {
				err = errors.Join(err, errUnread)
			} else {
				all = append(all, r)
			}
		}
		return err
	})
	return all, err
}

func (d *dir) Load(name string) (r local.Record, err error) {
	err = d.read(func() error {
		if name == d.disk.unread {
			return errUnread
		}
		var ok bool
		if r, ok = d.disk.records[name]; !ok {
			return fmt.Errorf("%w: no record", volume.ErrNotFound)
		}
		return nil
	})
	return r, err
}

func (d *dir) Save(r local.Record) error {
	return d.write("save", r.Name, func() error { d.disk.records[r.Name] = r; return nil })
}

func (d *dir) Forget(name string) error {
	return d.write("forget", name, func() error {
		if _, ok := d.disk.data[name]; ok {
			d.forbid("%s is forgotten, and its data is there", name)
		}
		delete(d.disk.records, name)
		return nil
	})
}

func (d *dir) Make(ctx context.Context, r local.Record) error {
	if err := d.write("begin", r.Name, func() error {
		if d.disk.records[r.Name].State != local.Making {
			d.forbid("%s is made, which its record does not say", r.Name)
		}
		if d.disk.data[r.Name] > 0 && d.isMounted(r.Name) {
			d.forbid("%s is made anew while it is mounted", r.Name)
		}
		d.disk.data[r.Name] = 0
		return nil
	}); err != nil {
		return err
	}
	from := r.Source.Snapshot + r.Source.Volume + r.Of
	if err := d.wait(ctx, func() bool { return from != "" && d.disk.holds }); err != nil {
		return err
	}
	return d.write("make", r.Name, func() error {
		if _, ok := d.disk.data[from]; from != "" && !ok {
			d.forbid("%s is made from %s, which is gone", r.Name, from)
		}
		d.disk.data[r.Name], d.disk.from[r.Name] = r.Size, from
		return nil
	})
}

func (d *dir) Grow(_ context.Context, r local.Record) error {
	return d.write("grow", r.Name, func() error {
		if r.Size > d.disk.records[r.Name].Size {
			d.forbid("%s grows to more than its record says", r.Name)
		}
		d.disk.data[r.Name] = max(d.disk.data[r.Name], r.Size)
		return nil
	})
}

func (d *dir) Trash(r local.Record) error {
	return d.write("trash", r.Name, func() error {
		if d.isMounted(r.Name) || d.shown[r.Name] && d.disk.is.Backend == local.Image {
			d.forbid("%s is deleted while it is mounted", r.Name)
		}
		if _, ok := d.disk.data[r.Name]; ok {
			delete(d.disk.data, r.Name)
			d.disk.trash = append(d.disk.trash, r.Name)
		}
		return nil
	})
}

func (d *dir) Erase(context.Context) error {
	return d.write("erase", "", func() error { d.disk.trash = nil; return nil })
}

func (d *dir) Mounts(table []attach.Mount, name string) (own []attach.Mount, err error) {
	for _, m := range table {
		if of, ok := d.NameOf(m); ok && of == name {
			own = append(own, m)
		}
	}
	return own, nil
}

func (d *dir) Stage(_ context.Context, r local.Record, path string, _ []string, readOnly bool) error {
	return d.write("stage", r.Name, func() error {
		if d.disk.data[r.Name] == 0 {
			d.forbid("%s is staged and not whole", r.Name)
		}
		if d.shown[r.Name] && d.disk.is.Backend == local.Image {
			d.forbid("%s is staged while readers have it", r.Name)
		}
		if !d.paths[path] {
			d.forbid("%s is staged at %s, which is not there", r.Name, path)
		}
		return d.mount(r.Name, pools.StagedAt(path, r.Block), readOnly)
	})
}

// Show opens a directory, which is the test's: what is on a disk here has no files.
func (d *dir) Show(ctx context.Context, r local.Record) (localdisk.Shown, error) {
	if r.Block {
		return nil, volume.Invalid("volume", "is a block device")
	}
	if err := d.wait(ctx, func() bool { return d.disk.hangs }); err != nil {
		return nil, err
	}
	if err := d.wait(context.Background(), func() bool { return d.slow[r.Name] }); err != nil { // in mount(2)
		return nil, err
	}
	err := d.change("show", r.Name, func() error {
		if d.shown[r.Name] {
			d.forbid("%s is shown twice", r.Name)
		}
		if d.isMounted(r.Name) {
			d.forbid("%s is shown while it is mounted", r.Name)
		}
		d.shown[r.Name] = true
		d.shows++
		d.most = max(d.most, len(d.shown))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &shownVolume{d, r.Name}, nil
}

// shownVolume is what Show has made.
type shownVolume struct {
	*dir
	name string
}

func (s *shownVolume) Tree() (*files.Tree, error) {
	fd, err := unix.Open(s.t.TempDir(), unix.O_DIRECTORY|unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	opener, err := beneath.New(fd)
	if err != nil {
		return nil, err
	}
	return files.New(fd, opener), nil
}

// End waits for readers that have files open.
func (s *shownVolume) End() error {
	if err := s.wait(context.Background(), func() bool { return s.held[s.name] }); err != nil {
		return err
	}
	return s.change("end", s.name, func() error { delete(s.shown, s.name); return nil })
}

func (d *dir) Stats(r local.Record, _ string) (s volume.Stats, err error) {
	err = d.read(func() error { s.Space.Total.Bytes = d.disk.data[r.Name]; return nil })
	return s, err
}

// mount mounts a volume, unless it is there. The caller holds the lock.
func (w *world) mount(name, target string, readOnly bool) error {
	if m, ok := attach.At(w.mounts, target); ok {
		switch {
		case m.Root != "/pool/volumes/"+name:
			return attach.ErrNotOurs
		case m.ReadOnly != readOnly:
			return fmt.Errorf("%w: it is mounted there in another way", volume.ErrConflict)
		}
		return nil
	}
	w.mounts = append(w.mounts, attach.Mount{Target: target, Root: "/pool/volumes/" + name, FSType: "xfs", ReadOnly: readOnly})
	return nil
}

func (w *world) isMounted(name string) bool {
	return slices.ContainsFunc(w.mounts, func(m attach.Mount) bool {
		return m.Root == "/pool/volumes/"+name && !strings.HasPrefix(m.Target, "/host/")
	})
}

func (w *world) unmount(target string) {
	w.mounts = slices.DeleteFunc(w.mounts, func(m attach.Mount) bool { return m.Target == target })
}

// Table reads the mount table.
func (d *daemon) Table() ([]attach.Mount, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mounts), nil
}

// NameOf returns the volume of a mount.
func (d *daemon) NameOf(m attach.Mount) (string, bool) {
	return strings.CutPrefix(m.Root, "/pool/volumes/")
}

// Lost reports whether a mount is of a disk that lose has taken away.
func (d *daemon) Lost(m attach.Mount) bool { return strings.HasPrefix(m.Root, "/lost/") }

// lose takes the disk of a volume away under its mounts.
func (w *world) lose(name string) {
	for i := range w.mounts {
		if m := &w.mounts[i]; m.Root == "/pool/volumes/"+name {
			m.Root = "/lost/" + name
		}
	}
}

// Unstage takes away what Stage has made.
func (d *daemon) Unstage(_ context.Context, name, path string) error {
	return d.change("unstage", name, func() error {
		d.unmount(path)
		d.unmount(filepath.Join(path, pools.DeviceFile))
		return nil
	})
}

// Bind binds one mount on another place.
func (d *daemon) Bind(source, target string, _ []string, readOnly bool) error {
	return d.change("bind", target, func() error {
		m, ok := attach.At(d.mounts, source)
		if !ok {
			return volume.ErrNotFound
		}
		d.paths[target] = true
		return d.mount(strings.TrimPrefix(m.Root, "/pool/volumes/"), target, readOnly)
	})
}

// Unmount unmounts.
func (d *daemon) Unmount(target string) error {
	return d.change("unmount", target, func() error { d.unmount(target); return nil })
}

// Remove removes a place.
func (d *daemon) Remove(target string) error {
	return d.change("remove", target, func() error {
		if _, ok := attach.At(d.mounts, target); ok {
			return volume.ErrBusy
		}
		delete(d.paths, target)
		return nil
	})
}

// MakeDir makes a directory.
func (d *daemon) MakeDir(path string) error {
	return d.change("mkdir", path, func() error { d.paths[path] = true; return nil })
}

func (*world) VolumeParked()                               {}
func (*world) VolumeUnparked()                             {}
func (*world) ActorRestarted()                             {}
func (*world) LocalOperation(string, time.Duration, error) {}
func (w *world) LocalPool(p local.Pool, counts local.Counts, up bool) { // in the keeper's turn, which a lock of ours may run
	figuresMu.Lock()
	defer figuresMu.Unlock()
	w.figures[p.UUID], w.ups[p.UUID] = counts, up
}

// figuresMu is for the figures of all worlds: the world's own lock is held while messages are sent.
var figuresMu sync.Mutex

func (w *world) figure(uuid string) (local.Counts, bool) {
	figuresMu.Lock()
	defer figuresMu.Unlock()
	return w.figures[uuid], w.ups[uuid]
}

// harness is a world with a daemon, in a bubble in which hours pass at once.
type harness struct {
	*testing.T
	*world
	node *Node
}

func inWorld(t *testing.T, test func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, changed: make(chan struct{}), disks: map[string]*disk{"/fast": newDisk(fast), "/slow": newDisk(slow)},
			paths: map[string]bool{}, shown: map[string]bool{}, held: map[string]bool{}, slow: map[string]bool{},
			figures: map[string]local.Counts{}, ups: map[string]bool{},
		}
		h := &harness{T: t, world: w}
		h.start()
		defer func() { h.end(t.Failed()) }()
		test(h)
	})
}

func (h *harness) start() {
	h.Helper()
	h.mu.Lock()
	h.life++
	h.steps = 0
	d := &daemon{h.world, h.life}
	h.mu.Unlock()
	n, err := Start(Config{
		Places: []Place{{Class: "c", Path: "/fast"}, {Class: "c", Path: "/slow"}}, Open: d.Open, Machine: d, Metrics: h.world, HostRoot: "/host",
		Changed: func() { h.appeared++ }, Log: logr.Discard(),
	})
	if err != nil {
		h.Fatal(err)
	}
	h.node = n
	synctest.Wait()
}

// end ends the daemon. kill lets no running call have an effect.
func (h *harness) end(kill bool) {
	h.Helper()
	h.locked(func() {
		if kill {
			h.life++
		}
		for _, d := range h.disks {
			d.hangs, d.holds = false, false
		}
		clear(h.held)
		clear(h.slow)
		if kill {
			clear(h.shown)
		}
	})
	if err := h.node.Stop(context.Background()); err != nil {
		h.Error(err)
	}
	time.Sleep(2 * time.Second) // the library's dead letter throttle
}

func (h *harness) restart(kill bool) {
	h.Helper()
	h.end(kill)
	h.locked(func() {
		for _, d := range h.disks {
			d.open = map[int]bool{}
		}
	})
	h.start()
}

func (h *harness) bounded() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	h.Cleanup(cancel)
	return ctx
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) want(err, want error, doing string) {
	h.Helper()
	if !errors.Is(err, want) {
		h.Errorf("%s: %v, want %v", doing, err, want)
	}
}

// pass lets time pass.
func (h *harness) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *harness) create(name string, size int64) error {
	_, err := h.node.CreateVolume(h.bounded(), fast, local.NewVolume{Name: name, Size: size})
	return err
}

func (h *harness) clone(name, of string) error {
	v := cloneOf(name, of)
	v.Size = gib
	_, err := h.node.CreateVolume(h.bounded(), fast, v)
	return err
}

func cloneOf(name, of string) local.NewVolume {
	return local.NewVolume{Name: name, Size: 2 * gib, Source: local.Source{Volume: of}}
}

func (h *harness) remove(name string) error { return h.node.DeleteVolume(h.bounded(), fast, name) }

func (h *harness) snap(name, of string) error {
	_, err := h.node.CreateSnapshot(h.bounded(), fast, name, of)
	return err
}

func (h *harness) stage(name string) error {
	return h.node.Stage(h.bounded(), pools.Staging{Volume: name, Path: "/staging/" + name, Pool: fast})
}

func (h *harness) unstage(name string) error {
	return h.node.Unstage(h.bounded(), name, "/staging/"+name)
}

func (h *harness) publish(name, pod string) error {
	return h.node.Publish(h.bounded(), pools.NodePublication{Volume: name, Staging: "/staging/" + name, Target: podPath(name, pod)})
}

func (h *harness) unpublish(name, pod string) error {
	return h.node.Unpublish(h.bounded(), name, podPath(name, pod))
}

func podPath(name, pod string) string { return "/pods/" + pod + "/" + name }

func (h *harness) find(name string) (local.Volume, error) {
	return h.node.Volume(h.bounded(), fast, name)
}

// leftovers lists what is left on the node.
func (h *harness) leftovers() (left []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.mounts {
		left = append(left, "mount at "+m.Target)
	}
	for path, d := range h.disks {
		for name := range d.records {
			left = append(left, "record of "+name+" in "+path)
		}
		for name := range d.data {
			left = append(left, "data of "+name+" in "+path)
		}
		for _, name := range d.trash {
			left = append(left, "trash of "+name+" in "+path)
		}
	}
	for name := range h.shown {
		left = append(left, "mount of "+name+" for readers")
	}
	for path := range h.paths {
		if strings.HasPrefix(path, "/pods/") {
			left = append(left, "path "+path)
		}
	}
	slices.Sort(left)
	return left
}
