package arrays_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/arrays"
	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

var (
	poolVolumes = schema.GroupVersionResource{Group: "pools.katbox.io", Version: "v1alpha1", Resource: "poolvolumes"}
	since       = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
)

// poolVolume is one that is retained on an array, as the controller writes it.
func poolVolume(number int, namespace, claim string, change func(*v1alpha1.PoolVolume)) *unstructured.Unstructured {
	at := metav1.NewTime(since.Add(time.Duration(number) * time.Minute))
	until := metav1.NewTime(at.Add(24 * time.Hour))
	v := &v1alpha1.PoolVolume{
		TypeMeta:   metav1.TypeMeta{APIVersion: "pools.katbox.io/v1alpha1", Kind: "PoolVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pvc-%03d", number), CreationTimestamp: metav1.NewTime(since.Add(-time.Hour))},
		Spec: v1alpha1.PoolVolumeSpec{
			ClassName: "fast", PoolName: "berlin", Protocol: v1alpha1.ISCSI, VolumeMode: v1alpha1.Filesystem,
			ClaimRef: &v1alpha1.ClaimRef{Namespace: namespace, Name: claim, UID: "uid-of-claim", NamespaceUID: "uid-of-namespace"},
		},
		Status: v1alpha1.PoolVolumeStatus{State: v1alpha1.VolumeRetained, RetainedSince: &at, RetainedUntil: &until},
	}
	v.Status.Capacity = resource.MustParse("10Gi")
	if change != nil {
		change(v)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// world is an Arrays with the API server that it asks.
type world struct {
	*arrays.Arrays
	t      *testing.T
	client *dynamicfake.FakeDynamicClient

	mu sync.Mutex
	// refused answers lists; nil: they are answered.
	refused error
	// all: it does not select by the state.
	all bool
	// lists are the field selectors of the lists so far.
	lists []string
}

// newWorld begins to follow these objects; in a bubble of synctest.
func newWorld(t *testing.T, change func(*world), objects ...runtime.Object) *world {
	w := &world{t: t, client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{poolVolumes: "PoolVolumeList"}, objects...)}
	w.client.PrependReactor("list", "poolvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		selector := action.(clienttesting.ListAction).GetListRestrictions().Fields.String()
		w.lists = append(w.lists, selector)
		if w.refused != nil {
			return true, nil, w.refused
		}
		if w.all && selector != "" {
			return true, nil, apierrors.NewBadRequest("field label not supported: status.state")
		}
		return false, nil, nil
	})
	if change != nil {
		change(w)
	}
	var err error
	if w.Arrays, err = arrays.New(arrays.Config{Client: w.client, Log: logr.Discard()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); w.Wait() })
	w.Start(ctx)
	synctest.Wait()
	return w
}

// names lists what a query selects, page by page.
func (w *world) names(q api.Query) (names []string) {
	w.t.Helper()
	for {
		page, err := w.List(w.t.Context(), fleet.Reader{}, q)
		if err != nil {
			w.t.Fatal(err)
		}
		if q.Limit > 0 && len(page.Items) > q.Limit {
			w.t.Errorf("a page of %d has %d", q.Limit, len(page.Items))
		}
		for _, v := range page.Items {
			names = append(names, v.ID)
		}
		if q.Continue = page.Continue; q.Continue == "" {
			return names
		}
	}
}

func (w *world) want(q api.Query, names ...string) {
	w.t.Helper()
	if got := w.names(q); !slices.Equal(got, names) {
		w.t.Errorf("%+v: %v, want %v", q, got, names)
	}
}

// held returns how many volumes the holdings count.
func (w *world) held(namespace string) (count int) {
	for _, h := range w.With(namespace) {
		for _, holding := range h.Holdings {
			count += holding.Volumes
		}
	}
	return count
}

// TestListed: what is retained on arrays is listed in the order of all lists, and nothing else.
func TestListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil,
			poolVolume(1, "ci", "data", nil), poolVolume(2, "ci", "cache", nil), poolVolume(3, "etl", "data", nil),
			poolVolume(4, "ci", "local", func(v *v1alpha1.PoolVolume) { v.Spec.Protocol = v1alpha1.Local }),
			poolVolume(5, "ci", "used", func(v *v1alpha1.PoolVolume) { v.Status.State = v1alpha1.VolumeReady }),
			poolVolume(6, "ci", "given", func(v *v1alpha1.PoolVolume) {
				v.Annotations = map[string]string{v1alpha1.RestoredFromAnnotation: "{}"}
			}),
			poolVolume(7, "", "", func(v *v1alpha1.PoolVolume) { v.Spec.ClaimRef = nil }),
			poolVolume(8, "ci", "earlier", func(v *v1alpha1.PoolVolume) { v.Spec.ClaimRef.NamespaceUID = "uid-of-earlier" }),
			poolVolume(9, "ci", "unsaid", func(v *v1alpha1.PoolVolume) { v.Spec.ClaimRef.NamespaceUID = "" }),
		)
		for _, limit := range []int{0, 1, 2} {
			w.want(api.Query{Limit: limit}, "pvc-009", "pvc-008", "pvc-007", "pvc-003", "pvc-002", "pvc-001")
			w.want(api.Query{Limit: limit, Namespace: "ci"}, "pvc-009", "pvc-008", "pvc-002", "pvc-001")
			w.want(api.Query{Limit: limit, Namespace: "ci", Tenancy: &volume.Tenancy{UID: "uid-of-namespace"}}, "pvc-002", "pvc-001")
			w.want(api.Query{Limit: limit, Namespace: "ci", Pod: "data"}, "pvc-001")
			w.want(api.Query{Limit: limit, NoNamespace: true}, "pvc-007")
		}
		w.want(api.Query{Namespace: "none"})
		w.want(api.Query{PodUID: "0c8e"})
		if ci, all, none := w.held("ci"), w.held(""), w.held("none"); ci != 4 || all != 6 || none != 0 {
			t.Errorf("the holdings count %d of ci, %d of all and %d of none", ci, all, none)
		}
		page, err := w.List(t.Context(), fleet.Reader{}, api.Query{Pod: "data", Namespace: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		v := page.Items[0]
		if v.Array == nil || *v.Array != (api.Array{Pool: "berlin", Class: "fast", Size: "10Gi"}) || *v.Bytes != 10<<30 ||
			!v.ExpiresAt.Equal(since.Add(24*time.Hour+time.Minute)) || v.Owner.UID != "uid-of-claim" || v.Claim != "data" {
			t.Errorf("it is described as %+v, %+v, %+v", v, v.Array, v.Owner)
		}
		if w.lists[0] != "status.state=Retained" {
			t.Errorf("it asks for %q, and so for volumes that are in use", w.lists[0])
		}
	})
}

// TestChanges: a volume is listed from when it is retained until a claim has it or it is deleted.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		volumes := w.client.Resource(poolVolumes)
		check := func(_ *unstructured.Unstructured, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		used := func(v *v1alpha1.PoolVolume) { v.Status.State = v1alpha1.VolumeReady }
		check(volumes.Create(t.Context(), poolVolume(1, "ci", "data", used), metav1.CreateOptions{}))
		w.want(api.Query{})
		check(volumes.Update(t.Context(), poolVolume(1, "ci", "data", nil), metav1.UpdateOptions{}))
		check(volumes.Create(t.Context(), poolVolume(2, "ci", "data", nil), metav1.CreateOptions{}))
		w.want(api.Query{}, "pvc-002", "pvc-001")
		check(volumes.Update(t.Context(), poolVolume(1, "ci", "data", used), metav1.UpdateOptions{}))
		w.want(api.Query{}, "pvc-002")
		check(volumes.Update(t.Context(), poolVolume(2, "etl", "data", nil), metav1.UpdateOptions{}))
		w.want(api.Query{Namespace: "ci"})
		w.want(api.Query{Namespace: "etl"}, "pvc-002")
		check(nil, volumes.Delete(t.Context(), "pvc-002", metav1.DeleteOptions{}))
		w.want(api.Query{})
		if w.held("") != 0 {
			t.Error("it holds what is gone")
		}
	})
}

// TestServerThatCannotSelect: it sends all PoolVolumes, and those that are in use are dropped.
func TestServerThatCannotSelect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.all = true }, poolVolume(1, "ci", "data", nil),
			poolVolume(2, "ci", "used", func(v *v1alpha1.PoolVolume) { v.Status.State = v1alpha1.VolumeReady }))
		w.want(api.Query{}, "pvc-001")
	})
}

// TestWithoutPools: a cluster without the resources lacks nothing, and has pools once they are there.
func TestWithoutPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.refused = apierrors.NewNotFound(poolVolumes.GroupResource(), "") }, poolVolume(1, "ci", "data", nil))
		if _, missing := w.Missing(); missing || w.There() || w.held("ci") != 0 {
			t.Error("a cluster without pools lacks some")
		}
		w.refuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.want(api.Query{}, "pvc-001"); !w.There() {
			t.Error("the pools are not there")
		}
	})
}

func (w *world) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = err
}

// TestRefused: as long as the API server does not say what is retained, lists name that as missing.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(poolVolumes.GroupResource(), "", errors.New("no right"))
		w := newWorld(t, func(w *world) { w.refused = forbidden }, poolVolume(1, "ci", "data", nil))
		if m, missing := w.Missing(); !missing || m.Node != fleet.Arrays || m.Reason != fleet.NotListed || !w.There() {
			t.Errorf("nothing is missing: %+v", m)
		}
		if _, err := w.List(t.Context(), fleet.Reader{}, api.Query{}); err == nil {
			t.Error("there is a list")
		}
		w.refuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, missing := w.Missing(); missing {
			t.Error("it is still missing")
		}
		w.want(api.Query{}, "pvc-001")
	})
}

// TestFallsBehind: what cannot be followed any more is listed as it was last known, and named as missing until it is
// read again. A watch that ends as soon as it has begun is no reason to ask without a pause.
func TestFallsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watches []*watch.RaceFreeFakeWatcher
		w := newWorld(t, func(w *world) {
			w.client.PrependWatchReactor("poolvolumes", func(clienttesting.Action) (bool, watch.Interface, error) {
				watches = append(watches, watch.NewRaceFreeFake())
				return true, watches[len(watches)-1], nil
			})
		}, poolVolume(1, "ci", "data", nil))
		missing := func(want bool, when string) {
			t.Helper()
			if _, is := w.Missing(); is != want {
				t.Errorf("missing %s: %t", when, is)
			}
		}
		missing(false, "once they are listed")
		time.Sleep(time.Minute)
		watches[0].Stop() // in its time
		synctest.Wait()
		missing(false, "after the end of a watch")
		if len(watches) != 2 {
			t.Fatalf("%d watches, want another one at once", len(watches))
		}
		w.refuse(apierrors.NewServiceUnavailable("the API server is away"))
		watches[1].Stop() // at once
		synctest.Wait()
		missing(true, "while nothing is heard")
		w.want(api.Query{}, "pvc-001")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if lists := len(w.lists); lists > 6 {
			t.Errorf("%d lists within ten seconds", lists)
		}
		w.refuse(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		missing(false, "once they are listed again")
		w.want(api.Query{}, "pvc-001")
	})
}

// TestHostileClaims: of a PoolVolume that says of a claim what no claim is called no more is kept than names can be
// long, and the others are listed.
func TestHostileClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("a", 250<<10)
		hostile := poolVolume(1, long, long, func(v *v1alpha1.PoolVolume) {
			v.Spec.PoolName, v.Spec.ClassName, v.Spec.ClaimRef.UID, v.Spec.ClaimRef.NamespaceUID = long, long, types.UID(long), types.UID(long)
		})
		if err := unstructured.SetNestedField(hostile.Object, "1"+strings.Repeat("0", 250<<10), "status", "capacity"); err != nil {
			t.Fatal(err)
		}
		odd := poolVolume(2, "ci", "\x1b[2J", func(v *v1alpha1.PoolVolume) { v.Spec.PoolName = "\x1b[2J" })
		w := newWorld(t, nil, hostile, odd, poolVolume(3, "ci", "data", nil))
		w.want(api.Query{Namespace: "ci", Tenancy: &volume.Tenancy{UID: "uid-of-namespace"}}, "pvc-003")
		page, err := w.List(t.Context(), fleet.Reader{}, api.Query{})
		text, err2 := json.Marshal(page)
		if err != nil || err2 != nil || len(page.Items) != 3 || len(text) > 3<<10 || strings.Contains(string(text), "[2J") {
			t.Errorf("%d volumes in %d bytes, %v, %v", len(page.Items), len(text), err, err2)
		}
		for _, v := range page.Items {
			if n := len(v.Array.Pool) + len(v.Array.Class) + len(v.Array.Size); n > 600 || strings.Contains(v.Array.Pool, "[2J") {
				t.Errorf("%s: %d bytes about the array", v.ID, n)
			}
		}
	})
}

// BenchmarkPage: the cost of a page follows its length, not how many volumes there are. One of another namespace costs
// nothing.
func BenchmarkPage(b *testing.B) {
	for _, volumes := range []int{100, 10_000} {
		b.Run(fmt.Sprint(volumes), func(b *testing.B) {
			var objects []runtime.Object
			for n := range volumes {
				objects = append(objects, poolVolume(n, "ci", "data", nil))
			}
			client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{poolVolumes: "PoolVolumeList"}, objects...)
			all, err := arrays.New(arrays.Config{Client: client, Log: logr.Discard()})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer all.Wait()
			defer cancel()
			all.Start(ctx)
			for missing := true; missing; _, missing = all.Missing() {
				time.Sleep(time.Millisecond)
			}
			for b.Loop() {
				if page, err := all.List(ctx, fleet.Reader{}, api.Query{Namespace: "ci", Limit: 50}); err != nil || len(page.Items) != 50 {
					b.Fatal(len(page.Items), err)
				}
			}
		})
	}
}
