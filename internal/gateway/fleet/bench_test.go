package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// jsonNode answers a first query with volumes in JSON, as over a connection.
type jsonNode struct {
	name   string
	client *api.Client
	list   api.VolumeList
	mu     sync.Mutex
	// bodies are answers by limit.
	bodies map[string][]byte
}

// newJSONNode returns one of so many nodes that have 80,000 volumes together.
func newJSONNode(number, of int) *jsonNode {
	n := &jsonNode{name: fmt.Sprintf("node-%04d.cluster.example", number), bodies: map[string][]byte{}}
	n.client = api.NewClient(n.name, n).Bounded(4 << 20)
	each := 80_000 / of
	for i := range each {
		r := record(fmt.Sprintf("csi-%064x", each*number+i), of*(each-i)+number)
		r.PodName = fmt.Sprintf("nightly-29000000-%05d", number)
		r.Pod = volume.PodUID(fmt.Sprintf("0c8e1f9a-0000-4000-8000-%012d", each*number+i))
		r.VolumeName, r.ServiceAccount = "scratch", "default"
		r.Owner.Name, r.Owner.Job, r.Owner.UID = "nightly-29000000", "nightly-29000000", "0c8e1f9a-1111-4000-8000-000000000000"
		v := describe(r, n.name)
		v.ServiceAccount, v.Volume, v.ExpiresAt, v.Bytes, v.Inodes = "default", "scratch", v.RetainedAt, new(int64(123_456_789)), new(int64(17))
		n.list.Items = append(n.list.Items, v)
	}
	return n
}

func (n *jsonNode) Node() string { return n.name }

func (n *jsonNode) List(ctx context.Context, by Reader, q api.Query) (api.VolumeList, error) {
	return n.client.OnBehalf(by.User, by.AuditID).List(ctx, q)
}

// RoundTrip answers from memory.
func (n *jsonNode) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	key := q.Get("limit") + " " + q.Get("before")
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bodies[key] == nil {
		limit, _ := strconv.Atoi(q.Get("limit"))
		list := api.VolumeList{}
		before, more := api.ParseKey(q.Get("before"))
		for _, v := range n.list.Items {
			at := volume.Key{Unpublished: *v.RetainedAt, ID: volume.ID(v.ID)}
			if more && at.Compare(before) >= 0 {
				continue
			}
			if list.Items = append(list.Items, v); len(list.Items) == limit {
				list.Continue = api.FormatKey(at)
				break
			}
		}
		n.bodies[key], _ = json.Marshal(list)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(n.bodies[key])), Header: http.Header{}}, nil
}

func (n *jsonNode) Gone(context.Context, Reader, api.GoneQuery) (api.GoneList, error) {
	return api.GoneList{}, nil
}

// jsonNodes are many of them.
type jsonNodes struct {
	fakeNodes
	held []Held
}

func (n *jsonNodes) Look(context.Context, string) Look { return Look{Held: n.held, Count: len(n.held)} }

// newJSONNodes returns so many nodes. If they tell, they say when their newest volume was retained.
func newJSONNodes(count int, tell bool) *jsonNodes {
	all := &jsonNodes{}
	for i := range count {
		n := newJSONNode(i, count)
		h := api.Holding{Namespace: "ci", Volumes: len(n.list.Items)}
		if tell {
			h.Newest = *n.list.Items[0].RetainedAt
		}
		all.held = append(all.held, Held{Node: n, Holdings: []api.Holding{h}})
	}
	return all
}

// BenchmarkList lists volumes of nodes that answer in JSON, without what connections cost; all are asked, or those that say they
// have the newest.
func BenchmarkList(b *testing.B) {
	for _, bm := range []struct {
		nodes, limit int
		tell         bool
	}{{5000, 1, false}, {5000, 500, false}, {5000, 5000, false}, {20_000, 500, false}, {20_000, 500, true}} {
		b.Run(fmt.Sprintf("nodes=%d/limit=%d/tell=%v", bm.nodes, bm.limit, bm.tell), func(b *testing.B) {
			f, _ := newFleet(b, &fakeNodes{}, nil)
			f.cfg.Nodes = newJSONNodes(bm.nodes, bm.tell)
			_, _ = f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: bm.limit}) // makes the bodies
			b.ReportAllocs()
			began := processorTime()
			for b.Loop() {
				page, err := f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: bm.limit})
				if err != nil || len(page.Entries) != bm.limit {
					b.Fatalf("%d entries, %v", len(page.Entries), err)
				}
				b.ReportMetric(float64(page.Fleet.Asked), "asked")
			}
			b.ReportMetric((processorTime()-began).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkListMemory makes 16 pages of 5,000 entries at the same time, and reports what they take, and
// how much memory was in use with the garbage of making them.
func BenchmarkListMemory(b *testing.B) {
	f, _ := newFleet(b, &fakeNodes{}, nil)
	f.cfg.Nodes = newJSONNodes(5000, false)
	_, _ = f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: 5000}) // makes the bodies
	for b.Loop() {
		before := heapInUse()
		pages := make([]Page, 16)
		var running sync.WaitGroup
		for i := range pages {
			running.Go(func() {
				var err error
				if pages[i], err = f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: 5000}); err != nil {
					b.Error(err)
				}
			})
		}
		running.Wait()
		var with runtime.MemStats
		runtime.ReadMemStats(&with)
		b.ReportMetric((float64(heapInUse())-float64(before))/1e6, "MB-kept")
		b.ReportMetric((float64(with.HeapAlloc)-float64(before))/1e6, "MB-with-garbage")
		entries := 0
		for _, p := range pages {
			entries += len(p.Entries) // fewer than 80,000 if the machine is too busy to ask all nodes in time
		}
		b.ReportMetric(float64(entries), "entries")
	}
}

// processorTime returns how long the process has had a processor.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// heapInUse returns how much memory is in use.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
