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
	"testing"

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

func newJSONNode(number int) *jsonNode {
	n := &jsonNode{name: fmt.Sprintf("node-%04d.cluster.example", number), bodies: map[string][]byte{}}
	n.client = api.NewClient(n.name, n).Bounded(4 << 20)
	for i := range 16 {
		r := record(fmt.Sprintf("csi-%064x", 16*number+i), 5000*(16-i)+number)
		r.PodName, r.Pod = fmt.Sprintf("nightly-29000000-%05d", number), volume.PodUID(fmt.Sprintf("0c8e1f9a-0000-4000-8000-%012d", 16*number+i))
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

// jsonNodes are 5,000 of them, with 16 volumes each.
type jsonNodes struct {
	fakeNodes
	held []Held
}

func (n *jsonNodes) Look(context.Context, string) Look { return Look{Held: n.held, Count: len(n.held)} }

func newJSONNodes() *jsonNodes {
	all := &jsonNodes{}
	for i := range 5000 {
		all.held = append(all.held, Held{Node: newJSONNode(i), Holdings: []api.Holding{{Namespace: "ci", Volumes: 16}}})
	}
	return all
}

// BenchmarkList lists volumes of 5,000 nodes that answer in JSON, without what connections cost.
func BenchmarkList(b *testing.B) {
	f, _ := newFleet(b, &fakeNodes{}, nil)
	f.cfg.Nodes = newJSONNodes()
	for _, limit := range []int{1, 500, 5000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, err := f.List(b.Context(), Request{Reader: everyone, Namespace: "ci", Limit: limit})
				if err != nil || len(page.Entries) != limit {
					b.Fatalf("%d entries, %v", len(page.Entries), err)
				}
			}
		})
	}
}

// BenchmarkListMemory makes 16 pages of 5,000 entries at the same time, and reports what they take, and
// how much memory was in use with the garbage of making them.
func BenchmarkListMemory(b *testing.B) {
	f, _ := newFleet(b, &fakeNodes{}, nil)
	f.cfg.Nodes = newJSONNodes()
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

// heapInUse returns how much memory is in use.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
