package fakevpsa

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
)

// Options describe an array that is started. A file with its state replaces those about the state.
type Options struct {
	// Path is the file for the state. Empty: it is in memory only.
	Path string
	// Settings: what is empty in them becomes "token", "22.06-sp1-123", and so on. The recycle bin is on
	// unless NoRecycleBin.
	Settings
	NoRecycleBin bool
	// Pools of the array; nil is one of 100,000 GiB. Empty fields of a pool are filled in.
	Pools []Pool
	// Now is the clock; nil is the machine's.
	Now func() time.Time
	// Plane has the data; nil is an array without any.
	Plane dataplane.Plane
	// Behind is called when the plane begins to lack what the state says; nil is no call. What clients find in their
	// volumes from then on may be the plane's fault.
	Behind func(error)
}

// Array is a fake array. Its methods may be called at the same time.
type Array struct {
	path  string
	now   func() time.Time
	admin http.Handler
	plane *follower
	// isBehind is Options.Behind, once the array has started.
	isBehind func(error)

	mu      sync.Mutex
	state   *state
	faults  []*Fault
	fault   int
	counts  map[string]int
	changes []Change
	renew   func() error
}

// New returns an array; it is an http.Handler.
func New(o Options) (*Array, error) {
	a := &Array{path: o.Path, now: o.Now, counts: map[string]int{}}
	if a.now == nil {
		a.now = time.Now
	}
	a.admin = a.administration()
	var err error
	if o.Path != "" {
		if a.state, err = load(o.Path); err != nil {
			return nil, err
		}
	}
	if a.state == nil {
		if a.state, err = newState(o); err != nil {
			return nil, err
		}
		if err := a.save(); err != nil {
			return nil, err
		}
	}
	if o.Plane != nil {
		a.plane = &follower{plane: o.Plane}
	}
	if err := a.follow(); err != nil {
		return nil, err
	}
	a.isBehind = o.Behind
	return a, nil
}

func newState(o Options) (*state, error) {
	// A group's number is not its volume's.
	s := &state{settings: o.Settings, next: map[string]uint32{"cg": 0x40}}
	set := &s.settings
	fill(&set.Token, "token")
	fill(&set.Version, "22.06-sp1-123")
	fill(&set.Message, "status-msg")
	fill(&set.CHAPUser, "vpsa-user")
	fill(&set.CHAPSecret, "vpsa-secret-12")
	if set.Serial == 0 {
		set.Serial = 1
	}
	for i := range set.Portals {
		fill(&set.Portals[i], fmt.Sprintf("10.%d.%d.%d", byte(set.Serial>>8), byte(set.Serial), i+1))
	}
	set.RecycleBin = !o.NoRecycleBin
	pools := o.Pools
	if pools == nil {
		pools = []Pool{{Capacity: 100_000}}
	}
	for _, p := range pools {
		if err := s.addPool(p); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func fill(s *string, with string) {
	if *s == "" {
		*s = with
	}
}

func (s *state) addPool(p Pool) error {
	if p.Capacity <= 0 {
		return errors.New("a pool needs a capacity in GiB")
	}
	p.ID = s.newID("pool")
	fill(&p.Name, p.ID)
	fill(&p.Mode, "normal")
	fill(&p.Status, "Normal")
	if s.pools.named(p.Name) != nil {
		return fmt.Errorf("two pools are called %s", p.Name)
	}
	s.pools.put(&p)
	return nil
}

// look runs f on the state, with what was due by now done before.
func (a *Array) look(f func(*state)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(false)
	f(a.state)
}

// alter runs f on the state and saves that.
func (a *Array) alter(f func(s *state, now time.Time) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settle(false)
	if err := f(a.state, a.now()); err != nil {
		return err
	}
	if err := a.save(); err != nil {
		return err
	}
	return a.follow()
}

func values[T any](of []*T) []T {
	all := make([]T, len(of))
	for i, o := range of {
		all[i] = *o
	}
	return all
}

// Volumes returns all volumes.
func (a *Array) Volumes() (all []Volume) {
	a.look(func(s *state) { all = values(s.volumes.items) })
	return all
}

// RecycleBin returns the deleted volumes that the recycle bin keeps.
func (a *Array) RecycleBin() (all []Volume) {
	a.look(func(s *state) { all = values(s.bin.items) })
	return all
}

// Servers returns all server records.
func (a *Array) Servers() (all []Server) {
	a.look(func(s *state) { all = values(s.servers.items) })
	return all
}

// Snapshots returns all snapshots.
func (a *Array) Snapshots() (all []Snapshot) {
	a.look(func(s *state) { all = values(s.snapshots.items) })
	return all
}

// Pools returns all pools.
func (a *Array) Pools() (all []Pool) {
	a.look(func(s *state) { all = values(s.pools.items) })
	return all
}

// Attachments returns where volumes are attached.
func (a *Array) Attachments() (all []Attachment) {
	a.look(func(s *state) {
		for _, v := range s.volumes.items {
			all = append(all, v.Attachments...)
		}
	})
	return all
}

// Settings returns what the array is, and how it answers.
func (a *Array) Settings() (set Settings) {
	a.look(func(s *state) { set = s.settings })
	return set
}

// Target returns the array's iSCSI target.
func (a *Array) Target() (iqn string) {
	a.look(func(s *state) { iqn = s.target() })
	return iqn
}

// Volume returns the volume with a display name.
func (a *Array) Volume(name string) (v Volume, ok bool) {
	a.look(func(s *state) {
		if found := s.volumes.named(name); found != nil {
			v, ok = *found, true
		}
	})
	return v, ok
}

// Counts returns how often each call came, such as "POST /api/volumes/*/expand.json".
func (a *Array) Counts() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.counts)
}

// ResetCounts counts from 0 again, and forgets the changes.
func (a *Array) ResetCounts() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.counts)
	a.changes = nil
}

// Changes returns the changes that requests made, in order; those of one kind of call, or all when
// call is empty. An attachment that was there already is no change.
func (a *Array) Changes(call string) (changes []Change) {
	a.look(func(*state) { changes = slices.Clone(a.changes) })
	if call != "" {
		changes = slices.DeleteFunc(changes, func(c Change) bool { return c.Call != call })
	}
	return changes
}
