package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// epoch is when the volumes of the tests were retained, and some time after it.
var epoch = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

const home = "katbox" // the gateway's own namespace

var (
	errBroken = errors.New("broken")
	everyone  = Reader{User: "admin", AuditID: "1", Everywhere: true}
	tenant    = Reader{User: "alice", AuditID: "2"}
)

// fakeNode is a node with some volumes.
type fakeNode struct {
	name string
	// before is called with each query, before it is answered; an error is the answer.
	before func(context.Context, api.Query) error
	// after may change an answer.
	after func(api.Query, *api.VolumeList)
	// page bounds how many volumes a page looks at; 0: no bound.
	page func() int
	// skip is why it is not asked.
	skip string
	// quiet: it has not said what it holds.
	quiet bool
	// says changes what it says it holds.
	says func(*api.Holding)

	// old: it does not know what is gone.
	old bool
	// afterGone may change an answer.
	afterGone func(api.GoneQuery, *api.GoneList)

	mu      sync.Mutex
	gone    []volume.Tombstone // the last one first
	volumes []volume.Record    // the newest first
	queries []api.Query
}

func (n *fakeNode) Node() string { return n.name }

// add adds a volume.
func (n *fakeNode) add(r volume.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r.Phase = volume.Retained
	i, _ := slices.BinarySearchFunc(n.volumes, r, func(a, b volume.Record) int { return b.Key().Compare(a.Key()) })
	n.volumes = slices.Insert(n.volumes, i, r)
}

// remove removes a volume and returns it.
func (n *fakeNode) remove(i int) volume.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.volumes[i]
	n.volumes = slices.Delete(n.volumes, i, i+1)
	return r
}

// asked returns how many queries there were, and the sum of their limits.
func (n *fakeNode) asked() (queries, volumes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range n.queries {
		volumes += q.Limit
	}
	return len(n.queries), volumes
}

func (n *fakeNode) List(ctx context.Context, _ Reader, q api.Query) (api.VolumeList, error) {
	if n.before != nil {
		if err := n.before(ctx, q); err != nil {
			return api.VolumeList{}, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queries = append(n.queries, q)
	s := volume.Selection{
		Namespace: q.Namespace, Tenancy: q.Tenancy, NoNamespace: q.NoNamespace, PodName: q.Pod, PodPrefix: q.PodPrefix,
		Pod: volume.PodUID(q.PodUID), Job: q.Job, OwnerKind: q.OwnerKind, Since: q.Since,
	}
	if q.Continue != "" {
		var ok bool
		if s.Before, ok = api.ParseKey(q.Continue); !ok {
			return api.VolumeList{}, fmt.Errorf("continue %q", q.Continue)
		}
	}
	looks := len(n.volumes) + 1
	if n.page != nil {
		looks = n.page()
	}
	var list api.VolumeList
	from, _ := slices.BinarySearchFunc(n.volumes, s.Before, func(r volume.Record, k volume.Key) int {
		if !k.IsZero() && r.Key().Compare(k) >= 0 {
			return -1
		}
		return 1
	})
	for i := from; i < len(n.volumes); i++ {
		r := n.volumes[i]
		if looks--; s.Selects(r) {
			list.Items = append(list.Items, describe(r, n.name))
		}
		if i+1 < len(n.volumes) && (len(list.Items) == q.Limit || looks <= 0) {
			list.Continue = api.FormatKey(r.Key())
			break
		}
	}
	if n.after != nil {
		n.after(q, &list)
	}
	return list, nil
}

// bury adds a volume that went some seconds after the epoch.
func (n *fakeNode) bury(r volume.Record, seconds int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone = slices.Insert(n.gone, 0, volume.Tombstone{
		Number: uint64(len(n.gone) + 1), Record: r,
		Gone: epoch.Add(time.Duration(seconds) * time.Second), Kept: time.Hour, Reason: volume.ForBytes,
	})
}

func (n *fakeNode) Gone(ctx context.Context, _ Reader, q api.GoneQuery) (api.GoneList, error) {
	if n.before != nil {
		if err := n.before(ctx, q.Query); err != nil {
			return api.GoneList{}, err
		}
	}
	if n.old {
		return api.GoneList{}, fmt.Errorf("node %s: %w", n.name, api.ErrOlder)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queries = append(n.queries, q.Query)
	s := volume.Selection{Namespace: q.Namespace, Tenancy: q.Tenancy, NoNamespace: q.NoNamespace, PodName: q.Pod}
	var list api.GoneList
	for _, t := range n.gone {
		if q.Continue != 0 && t.Number >= q.Continue || !s.Selects(t.Record) {
			continue
		}
		if len(list.Items) == q.Limit {
			list.Continue = list.Items[q.Limit-1].Number
			break
		}
		g := api.GoneVolume{
			Volume: describe(t.Record, n.name), Number: t.Number, GoneAt: t.Gone, Reason: t.Reason.String(),
			Promised: "12h", Kept: "1h", Early: true,
		}
		g.Phase = api.PhaseGone
		list.Items = append(list.Items, g)
	}
	if n.afterGone != nil {
		n.afterGone(q, &list)
	}
	return list, nil
}

// describe is what a node says of a volume.
func describe(r volume.Record, node string) api.Volume {
	v := api.Volume{
		ID: string(r.ID), Namespace: r.Namespace, Pod: r.PodName, PodUID: string(r.Pod), Node: node,
		Phase: r.Phase.String(), RetainedAt: &r.Unpublished,
	}
	if !r.Published.IsZero() {
		v.PublishedAt = &r.Published
	}
	if o := r.Owner; o.Verdict != volume.Unasked {
		v.Owner = &api.Owner{
			Verdict: o.Verdict.String(), NamespaceUID: o.NamespaceUID, Kind: o.Kind, Name: o.Name, UID: o.UID, Job: o.Job, JobIndex: o.JobIndex,
		}
	}
	return v
}

// fakeNodes are some nodes, and those that are not connected.
type fakeNodes struct {
	nodes   []*fakeNode
	missing []Missing
}

func (f *fakeNodes) Look(_ context.Context, namespace string) Look {
	return f.look(f.held(func(r volume.Record) bool { return namespace == "" || r.Namespace == namespace }))
}

func (f *fakeNodes) look(held []Held) Look {
	return Look{Held: held, Missing: slices.Clone(f.missing), Count: len(f.nodes) + len(f.missing)}
}

func (f *fakeNodes) LookAll(context.Context) Look {
	var all []Held
	for _, n := range f.nodes {
		all = append(all, Held{Node: n, Skip: n.skip, Holdings: []api.Holding{{Namespace: volume.OtherNamespaces, Volumes: 1}}})
	}
	return f.look(all)
}

func (f *fakeNodes) held(selects func(volume.Record) bool) []Held {
	var all []Held
	for _, n := range f.nodes {
		if h := (Held{Node: n, Skip: n.skip, Holdings: n.holdings(selects)}); len(h.Holdings) > 0 {
			all = append(all, h)
		}
	}
	return all
}

func (n *fakeNode) holdings(selects func(volume.Record) bool) []api.Holding {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.quiet {
		return []api.Holding{{Namespace: volume.OtherNamespaces, Volumes: 1}}
	}
	var all []api.Holding
	for _, r := range n.volumes {
		if !selects(r) {
			continue
		}
		// The first one is the newest.
		h := api.Holding{Namespace: r.Namespace, NamespaceUID: r.Owner.NamespaceUID, Verdict: r.Owner.Verdict.String(), Newest: r.Unpublished}
		i := slices.IndexFunc(all, func(other api.Holding) bool {
			return other.Namespace == h.Namespace && other.NamespaceUID == h.NamespaceUID && other.Verdict == h.Verdict
		})
		if i < 0 {
			i = len(all)
			all = append(all, h)
		}
		all[i].Volumes++
	}
	if n.says != nil {
		for i := range all {
			n.says(&all[i])
		}
	}
	return all
}

// hash is a hash of few bits, so that there are several nodes with the same.
func hash(node string) uint32 {
	sum := sha256.Sum256([]byte(node))
	return binary.BigEndian.Uint32(sum[:]) % 8
}

func (f *fakeNodes) ByHash(_ context.Context, h uint32) []State {
	var states []State
	for _, n := range f.nodes {
		if hash(n.name) == h {
			states = append(states, State{Node: n})
		}
	}
	for _, m := range f.missing {
		if hash(m.Node) == h {
			states = append(states, State{Missing: m})
		}
	}
	return states
}

// fakeNamespaces are the namespaces that there are now.
type fakeNamespaces map[string]volume.Tenancy

func (f fakeNamespaces) Tenancy(namespace string) (volume.Tenancy, bool) {
	t, ok := f[namespace]
	return t, ok
}

func (f fakeNamespaces) Lookup(_ context.Context, namespace string) (volume.Tenancy, bool, error) {
	if namespace == "broken" {
		return volume.Tenancy{}, false, errBroken
	}
	t, ok := f[namespace]
	return t, ok, nil
}

// fakeOwners are verdicts by pod UID and node.
type fakeOwners map[[2]string]api.Owner

func (f fakeOwners) Verdict(podUID, node string) (api.Owner, bool) {
	o, ok := f[[2]string{podUID, node}]
	return o, ok
}

// standardNamespaces are "ci" and the gateway's own. "ci" was created at the epoch.
var standardNamespaces = fakeNamespaces{"ci": {UID: "ci-2", Since: epoch}, home: {UID: "home", Since: epoch.Add(-time.Hour)}}

// newFleet returns a Fleet of nodes. dropped counts what is left out because it cannot be true.
func newFleet(t testing.TB, nodes *fakeNodes, owners fakeOwners) (f *Fleet, dropped func() int) {
	t.Helper()
	var mu sync.Mutex
	count := 0
	f, err := New(Config{
		Nodes: nodes, Namespaces: standardNamespaces, Owners: owners, Key: bytes.Repeat([]byte{7}, KeySize), Namespace: home, Log: logr.Discard(),
		Dropped: func(_ string, n int) {
			mu.Lock()
			defer mu.Unlock()
			count += n
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f, func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

// confirmed is an owner of the pod's namespace ci as it is now.
var confirmed = volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ci-2", Kind: "Job", Name: "j", UID: "j-uid", Job: "j"}

// record returns a volume of namespace ci, retained some seconds after the epoch.
func record(id string, seconds int) volume.Record {
	return volume.Record{
		ID: volume.ID(id), Pod: volume.PodUID("pod-" + id), PodName: "pod-" + id, Namespace: "ci", Owner: confirmed, Phase: volume.Retained,
		Published: epoch, Unpublished: epoch.Add(time.Duration(seconds) * time.Second),
	}
}

// node returns a node with volumes.
func node(name string, volumes ...volume.Record) *fakeNode {
	n := &fakeNode{name: name}
	for _, r := range volumes {
		n.add(r)
	}
	return n
}

// all asks for page after page until the end.
func all(t testing.TB, f *Fleet, r Request) (pages []Page) {
	t.Helper()
	for len(pages) < 100_000 {
		page, err := f.List(t.Context(), r)
		if err != nil {
			t.Fatalf("page %d: %v", len(pages), err)
		}
		pages = append(pages, page)
		if r.Continue = page.Continue; r.Continue == "" {
			return pages
		}
	}
	t.Fatal("the list does not end")
	return nil
}

// ids returns the IDs of some entries, those of foreign volumes with a star.
func ids(entries []Entry) string {
	var text []string
	for _, e := range entries {
		id := e.Volume.ID
		if e.Foreign {
			id += "*"
		}
		text = append(text, id)
	}
	return strings.Join(text, " ")
}

// silentNode never answers.
func silentNode(ctx context.Context, _ api.Query) error {
	<-ctx.Done()
	return ctx.Err()
}
