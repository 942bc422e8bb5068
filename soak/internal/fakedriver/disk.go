package fakedriver

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// record is what it knows of a volume, also after it was killed.
type record struct {
	id, pod, target string
	// namespace and podName are the pod's.
	namespace, podName string
	// deleting says that it may not be read any more.
	deleting bool
	// prolonged says that a reader has put the deadline off, which is wrong.
	prolonged bool
	// orphan says that no call made it retained. What a driver does wrong with
	// retained volumes spares these, or it would leak besides.
	orphan bool
	// published says that a publish was answered or is under way; the volume is
	// retained since unpublished otherwise.
	published   bool
	unpublished time.Time
	// wall is unpublished by the wall clock, as the driver reads it.
	wall time.Time
	// failed counts the publishes of which it has lied, or that it has refused.
	failed int
	// halved is when the first half was deleted.
	halved time.Time
	// onFailure says that it is to be kept only if its pod fails.
	onFailure bool
	// keep is how long it is to be kept; 0 is the driver's lifespan.
	keep time.Duration
	// source is the volume that it attaches: it has no data of its own. attachedBy is
	// which one attaches it, detached when one did so last.
	source, attachedBy string
	detached           time.Time
	// pinned is until when a person keeps it, released when one let it go.
	pinned, released time.Time
	// answered is when its last publish was.
	answered time.Time
}

// disk plays the file that the records are in.
type disk struct {
	mu      sync.Mutex
	records map[string]record
	// ended says how pods have, by UID.
	ended map[string]string
	// owners are those of the pods of volumes, by the volume's ID.
	owners map[string]volume.Owner
	// gone are the tombstones, the oldest first.
	gone []volume.Tombstone
}

func (d *disk) get(id string) (record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.records[id]
	return r, ok
}

func (d *disk) put(r record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records[r.id] = r
}

func (d *disk) remove(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.records, id)
}

// all are the records that are published, or those that are retained, the
// oldest first.
func (d *disk) all(published bool) []record {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []record
	for _, r := range d.records {
		if r.published == published {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b record) int {
		return cmp.Or(a.unpublished.Compare(b.unpublished), cmp.Compare(a.id, b.id))
	})
	return list
}

// retained is how many are retained.
func (d *disk) retained() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, r := range d.records {
		if !r.published {
			n++
		}
	}
	return n
}

// data is where the files of a volume are.
func (d *Driver) data(r record) string { return filepath.Join(d.cfg.Work, r.pod, r.id) }

// used reports whether a pod has a published volume for a while, and has written
// into it.
func (d *Driver) used(r record) bool {
	entries, err := os.ReadDir(d.data(r))
	return err == nil && len(entries) > 0 && !r.answered.IsZero() && time.Since(r.answered) > soon
}

// retain notes that a volume is retained from now on.
func (d *Driver) retain(r record) {
	r.published, r.target, r.unpublished = false, "", time.Now()
	r.pinned, r.released = time.Time{}, time.Time{}
	r.wall = r.unpublished.Add(d.wallClock())
	d.disk.put(r)
}

// recover is what it does when it starts. Its caller has the lock.
func (d *Driver) recover() {
	for _, r := range d.disk.all(false) {
		if r.orphan {
			continue
		}
		switch d.cfg.Bug {
		case ForgetsRetained:
			// A record that is without an end stands for one that is lost.
			r.unpublished = time.Now().Add(time.Hour)
			d.disk.put(r)
		case ForgetsPins:
			r.pinned = time.Time{}
			d.disk.put(r)
		case RestartsDeadlines:
			r.unpublished = time.Now()
			d.disk.put(r)
		}
	}
	if d.cfg.Bug == Unmounts {
		for _, r := range d.disk.all(true) {
			// What a pod writes into a bare target would keep it from being removed.
			if d.used(r) {
				_ = unmount(r.target) // what is not mounted cannot be unmounted
			}
		}
	}
	if d.cfg.Bug == KeepsTrash {
		return
	}
	left, _ := filepath.Glob(filepath.Join(d.cfg.Work, trashName, "*"))
	for _, name := range left {
		_ = os.RemoveAll(name) // the sweep tries again
	}
}
