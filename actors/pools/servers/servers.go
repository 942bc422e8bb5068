package servers

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// Records are the server records of nodes on arrays. Many volumes are attached to a node at the same
// time and share a record: one task makes it, and none deletes it while another attaches something.
// Tasks use it, which may wait; actors do not.
type Records struct {
	mu sync.Mutex
	of map[Key]*Record
}

// Key is a node on the array of a pool.
type Key struct{ Pool, Node string }

// Record is the server record of a node on an array. A task that attaches shares it; one that
// makes or deletes records holds it alone.
type Record struct {
	// slots are taken by those that share it. alone is for the one that wants them all.
	slots, alone chan struct{}
	// users are the tasks that hold it, or wait for it.
	users int
	// Known are the IDs of records that are on the array.
	Known map[Use]string
}

// Use is what a record has to be, and for which protocol.
type Use struct {
	array.NewServer
	Protocol v1alpha1.Protocol
}

// attachesAtOnce is how many volumes are attached to a node at the same time. An array takes fewer
// requests at once.
const attachesAtOnce = 8

// Hold waits until a task may use the record, with others or alone.
func (r *Record) Hold(ctx context.Context, alone bool) (release func(), err error) {
	slots, taken := 1, 0
	stopping := rules.Errorf(volume.ErrUnavailable, "the controller is stopping")
	if alone {
		slots = cap(r.slots)
		select {
		case r.alone <- struct{}{}:
		case <-ctx.Done():
			return nil, stopping
		}
	}
	release = func() {
		for range taken {
			<-r.slots
		}
		if alone {
			<-r.alone
		}
	}
	for ; taken < slots; taken++ {
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			release()
			return nil, stopping
		}
	}
	return release, nil
}

// New returns no records: what there is on an array is asked when it is needed.
func New() *Records { return &Records{of: map[Key]*Record{}} }

// Enter returns the record of a node, until Leave. It never waits.
func (s *Records) Enter(key Key) *Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of[key]
	if r == nil {
		r = &Record{slots: make(chan struct{}, attachesAtOnce), alone: make(chan struct{}, 1), Known: map[Use]string{}}
		s.of[key] = r
	}
	r.users++
	return r
}

// Leave lets a record go that Enter has returned.
func (s *Records) Leave(key Key, r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.users--; r.users == 0 && len(r.Known) == 0 {
		delete(s.of, key)
	}
}

// AttachWith attaches with a record that is known. The error is [array.ErrNotFound] where there is none.
func (r *Record) AttachWith(ctx context.Context, use Use, attach func(id string) error) error {
	release, err := r.Hold(ctx, false)
	if err != nil {
		return err
	}
	defer release()
	id, ok := r.Known[use]
	if !ok {
		return array.ErrNotFound
	}
	return attach(id)
}

// Compare forgets the records of nodes on a pool that are not on its array any more, or are not what they were: the next
// attachment makes them anew.
func (s *Records) Compare(ctx context.Context, pool string, there map[string]array.Server) error {
	s.mu.Lock()
	var keys []Key
	for key := range s.of {
		if key.Pool == pool {
			keys = append(keys, key)
		}
	}
	s.mu.Unlock()
	for _, key := range keys {
		if err := s.compareNode(ctx, key, there); err != nil {
			return err
		}
	}
	return nil
}

func (s *Records) compareNode(ctx context.Context, key Key, there map[string]array.Server) error {
	record := s.Enter(key)
	defer s.Leave(key, record)
	wrong := func(use Use, id string) bool {
		listed, ok := there[id]
		return !ok || !use.IsRight(listed) && !use.isUnsaid(listed)
	}
	for _, alone := range []bool{false, true} {
		release, err := record.Hold(ctx, alone)
		if err != nil {
			return err
		}
		found := false
		for use, id := range record.Known {
			found = found || wrong(use, id)
		}
		if found && alone {
			maps.DeleteFunc(record.Known, wrong)
		}
		release()
		if !found {
			break
		}
	}
	return nil
}

// IsRight reports whether a record lets in what the use needs.
func (u Use) IsRight(s array.Server) bool {
	return u.Protocol == v1alpha1.ISCSI && strings.EqualFold(s.IQN, u.IQN) || u.Protocol == v1alpha1.NFS && s.Address == u.Address
}

// isUnsaid reports whether a list has left out what the use needs to know of a record.
func (u Use) isUnsaid(s array.Server) bool {
	return u.Protocol == v1alpha1.ISCSI && s.IQN == "" || u.Protocol == v1alpha1.NFS && s.Address == ""
}
