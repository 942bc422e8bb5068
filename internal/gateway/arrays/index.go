package arrays

import (
	"slices"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// entry is a retained volume. It is not changed, but made anew.
type entry struct {
	// record is what lists select by: the claim stands for the pod.
	record volume.Record
	volume api.Volume
}

// index has the retained volumes in the order of lists, the one that was retained last first.
type index struct {
	byName     map[string]*entry
	all        []*entry
	namespaces map[string]*namespace
}

// namespace has the volumes that bear the name of one. Its owners are the namespaces that had that name, one after the other.
type namespace struct {
	volumes []*entry
	owners  map[owner]int
}

type owner struct {
	uid     string
	verdict volume.Verdict
}

func newIndex() *index {
	return &index{byName: map[string]*entry{}, namespaces: map[string]*namespace{}}
}

// put says what a volume is now: nil if it is not retained.
func (x *index) put(name string, now *entry) {
	if was := x.byName[name]; was != nil {
		x.drop(was)
		delete(x.byName, name)
	}
	if now == nil {
		return
	}
	x.byName[name] = now
	x.all = inserted(x.all, now)
	of := x.namespaces[now.record.Namespace]
	if of == nil {
		of = &namespace{owners: map[owner]int{}}
		x.namespaces[now.record.Namespace] = of
	}
	of.volumes = inserted(of.volumes, now)
	of.owners[now.owner()]++
}

func (x *index) drop(was *entry) {
	x.all = removed(x.all, was)
	of := x.namespaces[was.record.Namespace]
	of.volumes = removed(of.volumes, was)
	if of.owners[was.owner()]--; of.owners[was.owner()] == 0 {
		delete(of.owners, was.owner())
	}
	if len(of.volumes) == 0 {
		delete(x.namespaces, was.record.Namespace)
	}
}

func (e *entry) owner() owner { return owner{e.record.Owner.NamespaceUID, e.record.Owner.Verdict} }

// search returns where a key is in a list, or would be.
func search(list []*entry, key volume.Key) (at int, found bool) {
	return slices.BinarySearchFunc(list, key, func(e *entry, key volume.Key) int { return key.Compare(e.record.Key()) })
}

func inserted(list []*entry, e *entry) []*entry {
	at, _ := search(list, e.record.Key())
	return slices.Insert(list, at, e)
}

func removed(list []*entry, e *entry) []*entry {
	at, found := search(list, e.record.Key())
	if !found {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// page returns those that are selected, and where the list continues.
func (x *index) page(s volume.Selection) (list api.VolumeList) {
	from := x.all
	if s.Namespace != "" || s.NoNamespace {
		if from = nil; x.namespaces[s.Namespace] != nil {
			from = x.namespaces[s.Namespace].volumes
		}
	}
	if !s.Before.IsZero() {
		at, _ := search(from, s.Before)
		from = from[at:]
	}
	list.Items = []api.Volume{}
	var last volume.Key
	for _, e := range from {
		if !s.Selects(e.record) {
			continue
		}
		if len(list.Items) == s.Limit {
			list.Continue = api.FormatKey(last)
			break
		}
		list.Items, last = append(list.Items, e.volume), e.record.Key()
	}
	return list
}

// holdings says how many there are of a namespace, or of each if it is empty.
func (x *index) holdings(name string) (all []api.Holding) {
	add := func(name string, of *namespace) {
		for o, count := range of.owners {
			all = append(all, api.Holding{Namespace: name, NamespaceUID: o.uid, Verdict: o.verdict.String(), Volumes: count})
		}
	}
	if name != "" {
		if of := x.namespaces[name]; of != nil {
			add(name, of)
		}
		return all
	}
	for name, of := range x.namespaces {
		add(name, of)
	}
	return all
}
