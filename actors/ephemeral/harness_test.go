package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/go-logr/logr"
	mountutils "k8s.io/mount-utils"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/lastwords"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/mount"
	"github.com/katbox/katbox/internal/node/quota"
	"github.com/katbox/katbox/internal/node/scratch"
)

const (
	testLifespan = 12 * time.Hour
	testGrace    = 10 * time.Minute
	// testInterval is how often the disk is measured without pressure. Most tests let half a day pass; a minute is
	// enough for one that waits for a measurement.
	testInterval = 30 * time.Second
	testPod      = volume.PodUID("8b4c1a9e-5f1c-4f0e-9d43-6a1b2c3d4e5f")
	testID       = volume.ID("csi-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	// ownPod is the daemon's own, which every node has.
	ownPod = volume.PodUID("00000000-0000-4000-8000-000000c0ffee")
	// gonePod is a pod whose directory is not there.
	gonePod = volume.PodUID("00000000-0000-4000-8000-00000000dead")
)

// testNode is a node with real files, a fake kernel and a clock that synctest moves.
type testNode struct {
	t       *testing.T
	root    string
	mounter *fakeMounter
	// kernel is what the node sees instead of mounter, where a test sets it.
	kernel  Mounter
	records *fakeRecords
	disk    *fakeDisk
	scratch *scratch.Dir
	node    *Node
	// metrics are of the node that runs, and begin anew with each.
	metrics *metrics.Metrics
	// committed is how many commits there were before that.
	committed int
	more      []actor.ReceiverMiddleware
	// lifespan is what --afterlifespan sets.
	lifespan time.Duration
	headroom float64
	line     lifespan.Line
	burst    lifespan.Burst
	// minLifespan, maxRetained and perOwner are those of the Config.
	minLifespan time.Duration
	maxRetained func(namespace string) volume.Size
	perOwner    func(namespace string) volume.PerOwner
	table       fakeTable
	// rebooted is what the records say at the next start.
	rebooted bool
	// quotas are those of the file system; nil where the node has none. quotaMode is --quota.
	quotas    quota.Kernel
	quotaMode quota.Mode
	// log is the node's; nothing is logged where a test does not set it.
	log logr.Logger
	// threads is how many threads the process may have; 0 sets no limit.
	threads int
	// maxPinned is what --max-pinned sets.
	maxPinned lifespan.Amount
	// maxPin is added to testMaxPin, which --max-pin sets.
	maxPin time.Duration
	// published is the node's Config.Published.
	published func(volume.Record)
	// lag is the node's Config.Lag.
	lag actors.Lag
	// askOwner is the node's Config.AskOwner, toArchive its ToArchive.
	askOwner  func(volume.Record) bool
	toArchive func()
	// logs is the node's Config.Logs, and logsLimit its LogsLimit.
	logs      *lastwords.Logs
	logsLimit int64
}

// withNode runs a test in a bubble with a fresh node. The bubble fails the test when a goroutine is
// left at its end.
func withNode(t *testing.T, test func(t *testing.T, h *testNode)) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestNode(t)
		h.start()
		test(t, h)
		h.stop()
	})
}

func newTestNode(t *testing.T) *testNode {
	t.Helper()
	root := t.TempDir()
	h := &testNode{t: t, root: root, mounter: newFakeMounter(), records: newFakeRecords(),
		disk: &fakeDisk{free: 1000, total: 1000}, lifespan: testLifespan, headroom: 0.1, maxPinned: amount(t, "1Ti"), log: logr.Discard()}
	h.makePod(testPod)
	h.makePod(ownPod)
	dir, err := scratch.Open(filepath.Join(root, "work"))
	if err != nil {
		t.Fatal(err)
	}
	h.scratch = dir
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// config is what the node works with: what the records and the kernel have.
func (h *testNode) config() Config {
	var kernel Mounter = h.mounter
	if h.kernel != nil {
		kernel = h.kernel
	}
	return Config{
		Mounter: kernel, Bindings: h.bindings, Scratch: h.scratch, Space: h.disk.space, SpaceAfterErase: h.disk.spaceAfterErase,
		Records: h.records, Known: h.records.each, Rebooted: h.rebooted, PodsDir: h.podsDir(),
		Lifespan: h.lifespan, Limits: lifespan.Limits{Headroom: h.headroom, Line: h.line, Burst: h.burst}, PressureInterval: testInterval,
		MinLifespan: h.minLifespan, MaxRetained: h.maxRetained, PerOwner: h.perOwner,
		ReleaseGrace: testRelease, MaxPin: testMaxPin + h.maxPin, MaxPinned: h.maxPinned, OrphanGrace: testGrace, EraseParallel: 2,
		Node: "node-1", WorkdirOnNode: "/data", Log: h.log, Metrics: h.metrics, Published: h.published, Threads: h.threads,
		AskOwner: h.askOwner, ToArchive: h.toArchive, Lag: h.lag, Logs: h.logs, LogsLimit: h.logsLimit,
	}
}

// start starts the node.
func (h *testNode) start() {
	h.t.Helper()
	h.metrics, h.committed = metrics.New("test", ""), h.records.committed()
	cfg := h.config()
	if h.quotas != nil {
		cfg.Quota = quota.New(quota.Config{Kernel: h.quotas, Mode: h.quotaMode, IDs: quota.Range{First: firstProject, Size: 10},
			Draw: func(uint32) uint32 { return 0 }, Metrics: h.metrics, LimitChanged: h.metrics.LimitChanged, Log: h.log})
	}
	node, err := start(cfg, h.more...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.node = node
	synctest.Wait()
}

func (h *testNode) stop() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	if err := h.node.Stop(ctx); err != nil {
		h.t.Errorf("stop: %v", err)
	}
	// The library's own dead letter throttle lives for a second.
	time.Sleep(2 * time.Second)
}

// restart is a crash and a start: what was not recorded is forgotten.
func (h *testNode) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

func (h *testNode) podsDir() string { return filepath.Join(h.root, "kubelet", "pods") }

func (h *testNode) makePod(pod volume.PodUID) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Join(h.podsDir(), string(pod), "volumes"), 0o750); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) removePod(pod volume.PodUID) {
	h.t.Helper()
	if err := os.RemoveAll(filepath.Join(h.podsDir(), string(pod))); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) target(pod volume.PodUID, name string) string {
	return filepath.Join(h.podsDir(), string(pod), "volumes", name)
}

func (h *testNode) data(pod volume.PodUID, id volume.ID) string {
	return filepath.Join(h.root, "work", string(pod), string(id))
}

func (h *testNode) publication() volume.Publication {
	return volume.Publication{ID: testID, Pod: testPod, Namespace: "default", PodName: "batch-1", VolumeName: "scratch",
		ServiceAccount: "robot",
		Target:         volume.Target{Path: h.target(testPod, "mount")}}
}

func (h *testNode) publish() {
	h.t.Helper()
	if err := h.node.Publish(h.t.Context(), h.publication()); err != nil {
		h.t.Fatalf("publish: %v", err)
	}
}

func (h *testNode) unpublish() {
	h.t.Helper()
	if err := h.node.Unpublish(h.t.Context(), testID, h.target(testPod, "mount")); err != nil {
		h.t.Fatalf("unpublish: %v", err)
	}
}

// writeMarker writes a file into a volume's data directory.
func (h *testNode) writeMarker(pod volume.PodUID, id volume.ID) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.data(pod, id), "marker"), []byte(id), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *testNode) hasMarker(pod volume.PodUID, id volume.ID) bool {
	content, err := os.ReadFile(filepath.Join(h.data(pod, id), "marker"))
	return err == nil && string(content) == string(id)
}

func (h *testNode) wantMarker(when string) {
	h.t.Helper()
	if !h.hasMarker(testPod, testID) {
		h.t.Fatalf("%s: the volume's data is gone", when)
	}
}

// wantGone checks that nothing of a volume is left.
func (h *testNode) wantGone(pod volume.PodUID, id volume.ID) {
	h.t.Helper()
	synctest.Wait()
	if _, err := os.Lstat(h.data(pod, id)); !errors.Is(err, os.ErrNotExist) {
		h.t.Errorf("data directory of %s is still there (%v)", id, err)
	}
	if r, ok := h.records.get(id); ok {
		h.t.Errorf("record of %s is still there: %+v", id, r)
	}
}

func (h *testNode) wantPhase(id volume.ID, want volume.Phase) volume.Record {
	h.t.Helper()
	synctest.Wait()
	r, ok := h.records.get(id)
	if !ok || r.Phase != want {
		h.t.Fatalf("record of %s: %+v (known: %t), want phase %s", id, r, ok, want)
	}
	return r
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// bindings is what the fake kernel's mount table shows of the data directories.
func (h *testNode) bindings() ([]mount.Binding, error) {
	if err := h.table.readOnce(); err != nil {
		return nil, err
	}
	var found []mount.Binding
	for _, m := range h.mounter.mounts() {
		source, err := filepath.Rel(filepath.Join(h.root, "work"), m.Device)
		if err != nil {
			return nil, err
		}
		if source == ".." {
			source = mount.Above
		}
		found = append(found, mount.Binding{Source: source, Target: m.Path, ReadOnly: slices.Contains(m.Opts, "ro")})
	}
	return found, nil
}

// fakeTable is how the mount table is to read. What it shows is the fakeMounter's.
type fakeTable struct {
	mu sync.Mutex
	// err is what a reading ends with, took how long it takes.
	err  error
	took time.Duration
	// readings are how often it was read.
	readings int
}

func (t *fakeTable) readOnce() error {
	t.mu.Lock()
	t.readings++
	err, took := t.err, t.took
	t.mu.Unlock()
	time.Sleep(took)
	return err
}

// takes sets how long each reading takes.
func (t *fakeTable) takes(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = took
}

func (t *fakeTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readings
}

func (t *fakeTable) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// fakeMounter is mount-utils' fake kernel with faults.
type fakeMounter struct {
	*mountutils.FakeMounter
	mu sync.Mutex
	// onMount and onUnmount, when set, decide about each call before it is done.
	onMount, onUnmount func(target string) error
	// done counts the mounts that were made.
	done int
}

func newFakeMounter() *fakeMounter {
	return &fakeMounter{FakeMounter: mountutils.NewFakeMounter(nil)}
}

func (m *fakeMounter) Mount(source, target, fstype string, options []string) error {
	m.mu.Lock()
	hook := m.onMount
	m.mu.Unlock()
	if hook != nil {
		if err := hook(target); err != nil {
			return err
		}
	}
	m.mu.Lock()
	m.done++
	m.mu.Unlock()
	return m.FakeMounter.Mount(realPath(source), target, fstype, options)
}

func (m *fakeMounter) Unmount(target string) error {
	m.mu.Lock()
	hook := m.onUnmount
	m.mu.Unlock()
	if hook != nil {
		if err := hook(target); err != nil {
			return err
		}
	}
	return m.takeOff(target)
}

// takeOff takes the topmost mount away. The FakeMounter knows no other ones.
func (m *fakeMounter) takeOff(target string) error {
	below := slices.DeleteFunc(slices.Clone(m.mounts()), func(mounted mountutils.MountPoint) bool { return mounted.Path != target })
	if err := m.FakeMounter.Unmount(target); err != nil || len(below) < 2 {
		return err
	}
	for _, mounted := range below[:len(below)-1] {
		if err := m.FakeMounter.Mount(mounted.Device, target, mounted.Type, mounted.Opts); err != nil {
			return err
		}
	}
	return nil
}

func (m *fakeMounter) ReadOnly(path string) (bool, error) {
	for _, mounted := range m.mounts() {
		if mounted.Path == path {
			return slices.Contains(mounted.Opts, "ro"), nil
		}
	}
	return false, errors.New("not mounted")
}

func (m *fakeMounter) Shows(target, source string) (mount.Showing, error) {
	if _, err := os.Lstat(target); err != nil {
		return mount.NotMounted, nil
	}
	layers, _ := m.Layers(target, source)
	if len(layers) == 0 {
		return mount.NotMounted, nil
	}
	top := layers[len(layers)-1].Showing
	if top == mount.ShowsOther && slices.ContainsFunc(layers, func(l mount.Layer) bool { return l.Showing == mount.ShowsSource }) {
		return mount.ShowsBeneath, nil
	}
	return top, nil
}

func (m *fakeMounter) Layers(target, source string) (layers []mount.Layer, err error) {
	source = realPath(source)
	for _, mounted := range m.mounts() {
		showing := mount.ShowsOther
		switch {
		case mounted.Path != target:
			continue
		case mounted.Device == source:
			showing = mount.ShowsSource
		case filepath.Base(mounted.Device) == filepath.Base(source) &&
			filepath.Base(filepath.Dir(mounted.Device)) == filepath.Base(filepath.Dir(source)):
			showing = mount.ShowsNamesake
		}
		layers = append(layers, mount.Layer{Showing: showing, What: mounted.Type + " " + mounted.Device})
	}
	return layers, nil
}

// realPath returns a path without the handle that it may begin with, as the kernel does for a
// mount.
func realPath(path string) string {
	below, ok := strings.CutPrefix(path, "/proc/self/fd/")
	if !ok {
		return path
	}
	handle, rest, _ := strings.Cut(below, "/")
	dir, err := os.Readlink("/proc/self/fd/" + handle)
	if err != nil {
		return path
	}
	return filepath.Join(dir, rest)
}

func (m *fakeMounter) fail(onMount, onUnmount func(string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onMount, m.onUnmount = onMount, onUnmount
}

func (m *fakeMounter) mounts() []mountutils.MountPoint {
	list, _ := m.List() // the fake never fails
	return list
}

// forgetMounts is what a reboot does.
func (m *fakeMounter) forgetMounts() {
	for _, mounted := range m.mounts() {
		_ = m.FakeMounter.Unmount(mounted.Path) // the fake fails only when it is told to
	}
}

func always(err error) func(string) error { return func(string) error { return err } }

// fakeRecords is a store in memory with faults.
type fakeRecords struct {
	mu      sync.Mutex
	known   map[volume.ID]volume.Record
	stones  []volume.Tombstone
	commits int
	// journal are the changes that no commit has taken. onJournal, when set, decides about each before it is taken over.
	journal   []volume.Change
	since     time.Time
	onJournal func(volume.Change) error
	// onCommit, when set, decides about each commit before it is done.
	onCommit func([]volume.Change) error
	// reserveErr is why no room is reserved.
	reserveErr error
}

func newFakeRecords() *fakeRecords { return &fakeRecords{known: map[volume.ID]volume.Record{}} }

func (r *fakeRecords) Commit(changes []volume.Change) error {
	r.mu.Lock()
	hook := r.onCommit
	r.mu.Unlock()
	if hook != nil {
		if err := hook(changes); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits++
	changes = slices.Concat(r.journal, changes)
	r.journal = nil
	for _, change := range changes {
		if change.Record == nil {
			if change.Tombstone != nil {
				r.stones = append(r.stones, *change.Tombstone)
			}
			delete(r.known, change.ID)
			continue
		}
		r.known[change.ID] = *change.Record
	}
	return nil
}

// Journal takes nothing over where a test has no journal.
func (r *fakeRecords) Journal(c volume.Change, _ time.Duration) (first bool, wait, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.onJournal == nil {
		return false, errors.New("no journal"), nil
	}
	if wait := r.onJournal(c); wait != nil {
		return false, wait, nil
	}
	if len(r.journal) == 0 {
		r.since = time.Now()
	}
	r.journal = append(r.journal, c)
	return len(r.journal) == 1, nil, nil
}

// Waiting tells since when something waits, if it does.
func (r *fakeRecords) Waiting() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.journal) == 0 {
		return time.Time{}
	}
	return r.since
}

func (r *fakeRecords) Journalled(id volume.ID) bool {
	return slices.ContainsFunc(r.waiting(), func(c volume.Change) bool { return c.ID == id })
}

// waiting returns what no commit has taken.
func (r *fakeRecords) waiting() []volume.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.journal)
}

// setOnCommit sets onCommit while commits may run.
func (r *fakeRecords) setOnCommit(hook func([]volume.Change) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onCommit = hook
}

// tombstones returns the tombstones, the oldest first.
func (r *fakeRecords) tombstones() []volume.Tombstone {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stones)
}

// committed counts the commits that succeeded.
func (r *fakeRecords) committed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commits
}

// retained counts the records of retained volumes.
func (r *fakeRecords) retained() int {
	count := 0
	for _, record := range r.all() {
		if record.Phase == volume.Retained {
			count++
		}
	}
	return count
}

func (r *fakeRecords) ReserveError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reserveErr
}

func (r *fakeRecords) fail(onCommit func([]volume.Change) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onCommit = onCommit
}

func (r *fakeRecords) get(id volume.ID) (volume.Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, ok := r.known[id]
	return record, ok
}

// lose forgets all records.
func (r *fakeRecords) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.known)
}

func (r *fakeRecords) put(record volume.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[record.ID] = record
}

func (r *fakeRecords) all() []volume.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var records []volume.Record
	for _, record := range r.known {
		records = append(records, record)
	}
	return records
}

// each is how a start gets to know them.
func (r *fakeRecords) each(f func(volume.Record)) error {
	for _, record := range r.all() {
		f(record)
	}
	return nil
}

// fakeDisk is a file system of a certain size.
type fakeDisk struct {
	mu          sync.Mutex
	free, total uint64
	// freeInodes and inodes are the same of the inodes.
	freeInodes, inodes uint64
	// below is what the disk has, where free and total are those of a quota.
	below volume.Space
	// late comes free only when it is asked for.
	late     uint64
	err      error
	measured int
}

func (d *fakeDisk) spaceAfterErase(volume.Space) (volume.Space, error) {
	d.mu.Lock()
	d.free, d.late = d.free+d.late, 0
	d.mu.Unlock()
	return d.space()
}

func (d *fakeDisk) space() (volume.Space, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.measured++
	return volume.Space{Total: volume.Size{Bytes: int64(d.total), Inodes: int64(d.inodes)},
		Free:      volume.Size{Bytes: int64(d.free), Inodes: int64(d.freeInodes)},
		DiskTotal: d.below.Total, DiskFree: d.below.Free}, d.err
}

func (d *fakeDisk) set(free uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free, d.err = free, err
}

// retained puts a volume on disk that was unpublished some time ago.
func (h *testNode) retained(pod volume.PodUID, id volume.ID, ago, span time.Duration) {
	h.t.Helper()
	if _, err := h.scratch.Create(volume.Place{Pod: pod, ID: id}); err != nil {
		h.t.Fatal(err)
	}
	h.writeMarker(pod, id)
	record := volume.Record{ID: id, Pod: pod}
	h.records.put(record.Retain(time.Now().Add(-ago), span))
}

// numbered and numberedPod are names as a kubelet gives them.
func numbered(i int) volume.ID { return volume.ID(fmt.Sprintf("csi-%064x", i)) }

func numberedPod(i int) volume.PodUID {
	return volume.PodUID(fmt.Sprintf("00000000-0000-4000-8000-%012x", i))
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
