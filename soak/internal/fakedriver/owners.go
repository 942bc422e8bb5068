package fakedriver

import (
	"context"
	"fmt"
	"regexp"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/soak/internal/workload"
)

// Holdings has nothing that anything of the soak looks at.
func (s volumes) Holdings(context.Context) ([]volume.Holding, error) { return nil, nil }

// Own notes who owns the pod of a volume.
func (s volumes) Own(_ context.Context, id volume.ID, pod volume.PodUID, owner volume.Owner) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if v, ok := s.disk.records[string(id)]; !ok || v.pod != string(pod) {
		return fmt.Errorf("volume %s: %w", id, volume.ErrNotFound)
	}
	if s.disk.owners == nil {
		s.disk.owners = map[string]volume.Owner{}
	}
	s.disk.owners[string(id)] = s.disk.owners[string(id)].Learn(owner)
	return nil
}

// ownerOf returns who owns the pod of a volume, as far as it knows.
func (d *disk) ownerOf(id string) volume.Owner {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owners[id]
}

// family is whose volumes count together.
type family struct{ namespace, kind, name, ended string }

// due is the end of the name of a Job that a CronJob has made.
var due = regexp.MustCompile(`-[0-9]+$`)

// families are the retained volumes of pods that have owners, the oldest of each first.
func (r *run) families() map[family][]record {
	all := map[family][]record{}
	for _, v := range r.disk.all(false) {
		o := r.disk.ownerOf(v.id)
		r.disk.mu.Lock()
		ended := r.disk.ended[v.pod]
		r.disk.mu.Unlock()
		if o.Kind == "" || v.deleting {
			continue
		}
		f := family{v.namespace, o.Kind, o.Name, ended}
		if name := due.ReplaceAllString(o.Name, ""); o.Kind == "Job" && name != o.Name {
			f.kind, f.name = "CronJob", name
		}
		if r.cfg.Bug == CountsTogether {
			f.ended = ""
		}
		all[f] = append(all[f], v)
	}
	return all
}

// thin deletes the volumes of pods of which enough others of the same owner stay.
func (r *run) thin() {
	most := r.cfg.MaxPerOwner
	switch r.cfg.Bug {
	case KeepsAllOfOwners:
		return
	case KeepsOneLess:
		most.Last--
	case ForgetsFirst:
		most.First = 0
	}
	if most.Last == 0 {
		return
	}
	all := r.families()
	for of, list := range all {
		for _, v := range between(list, most) {
			switch {
			case r.attached(v):
			case r.cfg.Bug == TakesAnothers:
				for other, others := range all {
					if other.kind != of.kind || other.name != of.name || other.namespace != of.namespace {
						r.delete(others[0], volume.ForOwner)
					}
				}
			case r.cfg.Bug == BuriesUnowned:
				r.delete(v, volume.Expired)
			default:
				r.delete(v, volume.ForOwner)
			}
		}
	}
}

// between returns the volumes of pods that are neither among the first nor among the last ones.
func between(list []record, most workload.PerOwner) (all []record) {
	stay := map[string]bool{}
	for i := len(list) - 1; i >= 0 && len(stay) < most.Last; i-- {
		stay[list[i].pod] = true
	}
	for i := 0; i < len(list) && len(stay) < most.Last+most.First; i++ {
		stay[list[i].pod] = true
	}
	for _, v := range list {
		if !stay[v.pod] {
			all = append(all, v)
		}
	}
	return all
}
