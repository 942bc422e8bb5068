package arrays

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/attach/staged"
)

// errKilled is what a call comes to whose daemon was killed: nothing has heard of it.
var errKilled = errors.New("the daemon was killed")

// world is what outlives a daemon: the kernel of a node, the directories there, the arrays and the API server, in
// memory. It says what a daemon must never do.
type world struct {
	t  testing.TB
	mu sync.Mutex
	// life is the number of the daemon that runs; the calls of earlier ones do nothing.
	life    int
	figures counts
	// readings counts how often the mount table was read.
	readings int
	// steps counts the changes of this daemon's life, before and after each; it is killed at the killAt-th.
	steps, killAt int
	// changed is signaled when something that calls wait for may have changed.
	changed chan struct{}

	mounts []attach.Mount
	// copies are mounts below the host's root directory.
	copies  []attach.Mount
	paths   map[string]bool
	records map[string]staged.Record

	// shownAs are NFS servers by the names that the mount table shows in place of others.
	shownAs map[string]string
	// away are the NFS servers and targets that do not answer.
	away map[string]bool
	// fail, where it is set, makes a call fail.
	fail func(call string) error

	luns     map[string]map[int]*lun
	devices  []*attach.Device
	sessions map[string]*sessionState
	portals  map[string]string
	numbers  uint64
	hosts    int

	// waiting counts the calls that a server does not answer.
	waiting atomic.Int32

	// exports and lunNumbers are where volumes are by now, where that is not what the calls say.
	exports    map[string]string
	lunNumbers map[string]int

	apiDown bool
	secret  string
	reports map[string]bool
	// reported counts the reports.
	reported int
	// logins and chaps count.
	logins, chaps int
	// kept are the targets of which the host keeps a record with the secret.
	kept map[string]bool
	// unread is why a record cannot be read.
	unread error
	// detached are the attachments that are gone; asked counts the questions about that.
	detached map[string]bool
	asked    int
	// disks are what the controller has confirmed, by attachment; confirmed counts, and diskBytes is the last size.
	disks     map[string]string
	confirmed int
	diskBytes int64
}

// lun is a volume on an array.
type lun struct {
	serial, wwid string
	size         int64
	// content is the type of the file system, or "partial" where mkfs did not end, or "data".
	content string
	// formats counts the file systems that were made.
	formats int
	grown   int64
}

func (l *lun) identity() attach.Identity { return attach.Identity{Serial: l.serial, WWID: l.wwid} }

type sessionState struct {
	up      bool
	host    int
	address string
	since   time.Time
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, changed: make(chan struct{}), paths: map[string]bool{}, records: map[string]staged.Record{}, away: map[string]bool{},
		luns: map[string]map[int]*lun{}, sessions: map[string]*sessionState{}, portals: map[string]string{}, secret: "right",
		exports: map[string]string{}, lunNumbers: map[string]int{},
		reports: map[string]bool{}, detached: map[string]bool{}, kept: map[string]bool{}, disks: map[string]string{},
	}
}

// daemon is one life of a daemon, as what its Node calls.
type daemon struct {
	*world
	life int
}

// forbid reports what a daemon must never do.
func (w *world) forbid(format string, about ...any) {
	w.t.Helper()
	w.t.Errorf("forbidden: "+format, about...)
}

// locked changes the world as a test wants it, or looks at it.
func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// wake lets the calls that wait look again. The caller holds the lock.
func (w *world) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// change makes a change of the world, unless the daemon is killed before; it may be killed after it.
func (d *daemon) change(call string, make func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dies() {
		return errKilled
	}
	if d.fail != nil {
		if err := d.fail(call); err != nil {
			return err
		}
	}
	err := make()
	if d.dies() {
		return errKilled
	}
	return err
}

// dies is called with the lock, before and after each change.
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

// waits blocks while a server does not answer, as a system call does.
func (d *daemon) waits(server string) error {
	for {
		d.mu.Lock()
		dead, away, changed := d.life != d.world.life, d.away[server], d.changed
		d.mu.Unlock()
		switch {
		case dead:
			return errKilled
		case !away:
			return nil
		}
		d.waiting.Add(1)
		<-changed
		d.waiting.Add(-1)
	}
}

// set changes what is away.
func (w *world) set(server string, away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away[server] = away
	for target, s := range w.sessions {
		if target == server {
			s.up = !away
			s.since = time.Now()
		}
	}
	w.wake()
}

// lose ends a session, and with it its disks, under what is mounted.
func (w *world) lose(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sessions, target)
	for _, d := range slices.Clone(w.devices) {
		if d.Target == target {
			w.removeDevice(d)
		}
	}
	w.wake()
}

func (w *world) removeDevice(d *attach.Device) {
	w.devices = slices.DeleteFunc(w.devices, func(o *attach.Device) bool { return o == d })
	for i, m := range w.mounts {
		if isNode(m) && m.Root == "/"+d.Name {
			w.mounts[i].Root += "//deleted"
		}
	}
}

// at returns the topmost mount at a path. The caller holds the lock.
func (w *world) at(path string) (attach.Mount, bool) { return attach.At(w.mounts, path) }

// isMounted reports what is mounted at a path.
func (w *world) isMounted(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.at(path)
	return ok
}

// leftovers lists what is left on the node of volumes.
func (w *world) leftovers() (left []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.mounts {
		left = append(left, "mount at "+m.Target)
	}
	for _, d := range w.devices {
		left = append(left, "disk "+d.Name+" of "+d.Serial)
	}
	for target := range w.sessions {
		left = append(left, "session to "+target)
	}
	for target := range w.kept {
		left = append(left, "the host's record of "+target)
	}
	for id, r := range w.records {
		if isNote(r) && r.Formatting {
			continue
		}
		left = append(left, "record of "+id)
	}
	for path := range w.paths {
		if !strings.HasPrefix(path, "/staging/") || strings.HasSuffix(path, "/"+pools.DeviceFile) {
			left = append(left, "path "+path)
		}
	}
	slices.Sort(left)
	return left
}

// start starts a daemon, which takes over what there is.
func (w *world) start() *Node {
	w.t.Helper()
	w.mu.Lock()
	w.life++
	w.steps = 0
	d := &daemon{w, w.life}
	w.mu.Unlock()
	n, err := Start(Config{
		NodeName: "node", Table: d.Table, Look: d.Look, MountNFS: d.MountNFS, Disk: d, Initiator: d, Staged: records{d}, Cluster: cluster{d},
		Metrics: &w.figures, HostRoot: "/host", Log: logr.Discard(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// end ends a daemon. kill lets no running call have an effect.
func (w *world) end(n *Node, kill bool) {
	w.t.Helper()
	if kill {
		w.mu.Lock()
		w.life++
		w.wake()
		w.mu.Unlock()
	}
	if err := n.Stop(context.Background()); err != nil {
		w.t.Error(err)
	}
	time.Sleep(2 * time.Second) // the library's dead letter throttle
}

// counts are the metrics of all lives.
type counts struct {
	mu             sync.Mutex
	staged         map[string]int
	up, down, late int
}

func (*counts) VolumeParked()   {}
func (*counts) VolumeUnparked() {}
func (*counts) ActorRestarted() {}

func (c *counts) ArrayStaged(protocol string, delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.staged == nil {
		c.staged = map[string]int{}
	}
	c.staged[protocol] += delta
}

func (c *counts) ArraySessions(up, down int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up, c.down = up, down
}

func (c *counts) ArrayWaits(calls int, _ time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = calls
}

func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("staged %v, sessions up %d, down %d, late %d", c.staged, c.up, c.down, c.late)
}

// records are the durable ones.
type records struct{ *daemon }

func (r records) Save(record staged.Record) error {
	return r.change("save", func() error { r.records[record.Volume] = record; return nil })
}

func (r records) Remove(id string) error {
	return r.change("remove record", func() error { delete(r.records, id); return nil })
}

func (r records) Load(id string) (staged.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, ok := r.records[id]
	if !ok {
		return record, fmt.Errorf("%w: no record", errNotFound)
	}
	return record, nil
}

func (r records) All() (all []staged.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.records {
		all = append(all, record)
	}
	return all, r.unread
}
