package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/controller/watch"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/apitest"
)

// patience is a guard against hangs.
const patience = 2 * time.Minute

func start(t *testing.T) (*apitest.Server, client.WithWatch) {
	t.Helper()
	s := apitest.Start()
	t.Cleanup(s.Close)
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func volume(name string) *v1alpha1.PoolVolume {
	return &v1alpha1.PoolVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}},
		Spec:   v1alpha1.PoolVolumeSpec{ClassName: "c", PoolName: "p"},
		Status: v1alpha1.PoolVolumeStatus{State: v1alpha1.VolumeReady}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestObjectsAreKeptAsAnAPIServerDoes(t *testing.T) {
	_, c := start(t)
	v := volume("v")
	must(t, c.Create(t.Context(), v))
	if v.UID == "" || v.ResourceVersion == "" || v.Generation != 1 || v.Status.State != "" {
		t.Errorf("created %+v", v)
	}
	if err := c.Create(t.Context(), volume("v")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	old := v.DeepCopy()

	v.Status.State, v.Spec.PoolName = v1alpha1.VolumeReady, "other"
	must(t, c.Status().Update(t.Context(), v))
	if v.Status.State != v1alpha1.VolumeReady || v.Spec.PoolName != "p" || v.Generation != 1 {
		t.Errorf("its status was updated to %+v", v)
	}
	v.Status.State, v.Spec.PoolName = "", "other"
	must(t, c.Update(t.Context(), v))
	if v.Status.State != v1alpha1.VolumeReady || v.Spec.PoolName != "other" || v.Generation != 2 {
		t.Errorf("it was updated to %+v", v)
	}
	if err := c.Update(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("updated an old one: %v", err)
	}
	base := v.DeepCopy()
	v.Status.Message = "text"
	locked := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	must(t, c.Status().Patch(t.Context(), v, locked))
	v.Status.Message = "more"
	if err := c.Status().Patch(t.Context(), v, locked); !apierrors.IsConflict(err) {
		t.Errorf("patched an old one: %v", err)
	}

	other := base.UID + "x"
	if err := c.Delete(t.Context(), v, client.Preconditions{UID: &other}); !apierrors.IsConflict(err) {
		t.Errorf("deleted another one: %v", err)
	}
	must(t, c.Delete(t.Context(), v))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(v), v))
	if v.DeletionTimestamp == nil || v.Status.Message != "text" {
		t.Errorf("deleted with a finalizer: %+v", v)
	}
	v.Finalizers = nil
	must(t, c.Update(t.Context(), v))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(v), v); !apierrors.IsNotFound(err) {
		t.Errorf("without a finalizer: %v", err)
	}

	// A secret is sent as protobuf.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "katbox", Name: "s"}, Data: map[string][]byte{"token": []byte("x")}}
	must(t, c.Create(t.Context(), secret))
	var got corev1.Secret
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(secret), &got))
	if string(got.Data["token"]) != "x" {
		t.Errorf("read %+v", got)
	}
	var system metav1.PartialObjectMetadata
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	must(t, c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system))
	if system.UID == "" {
		t.Error("kube-system has no UID")
	}
}

// collector keeps what a watch tells.
type collector struct {
	mu      sync.Mutex
	has     map[string]bool
	changed chan struct{}
}

func (c *collector) Seen(kind string, o client.Object) { c.set(kind+"/"+o.GetName(), true) }
func (c *collector) Gone(kind, name string)            { c.set(kind+"/"+name, false) }

func (c *collector) set(what string, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if there {
		c.has[what] = true
	} else {
		delete(c.has, what)
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits until it has exactly this.
func (c *collector) await(t *testing.T, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all := map[string]bool{}
	for _, what := range want {
		all[what] = true
	}
	for {
		c.mu.Lock()
		got, changed := fmt.Sprint(c.has), c.changed
		done := reflect.DeepEqual(c.has, all)
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("has %s, want %v", got, all)
		}
	}
}

// TestWatchesTellEverything: with the controller's own watches, pages, metadata and breaks.
func TestWatchesTellEverything(t *testing.T) {
	s, c := start(t)
	must(t, c.Create(t.Context(), volume("before")))
	must(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	got := &collector{has: map[string]bool{}, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	w := watch.Start(ctx, watch.Config{API: c, Sink: got, Up: func(string, bool) {}, Log: logr.Discard(), Kinds: []watch.Kind{
		{Name: "PoolVolume", List: func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }},
		{Name: "Node", List: func() client.ObjectList {
			l := &metav1.PartialObjectMetadataList{}
			l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
			return l
		}},
	}})
	defer w.Wait()
	defer cancel()
	got.await(t, "PoolVolume/before", "Node/n")
	must(t, c.Create(t.Context(), volume("after")))
	must(t, c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	got.await(t, "PoolVolume/before", "PoolVolume/after")

	s.Refuse(func(r *http.Request) error {
		if strings.Contains(r.URL.RawQuery, "watch") || r.URL.Query().Get("limit") != "" {
			return errors.New("away")
		}
		return nil
	})
	v := volume("before")
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(v), v))
	v.Finalizers = nil
	must(t, c.Update(t.Context(), v))
	must(t, c.Delete(t.Context(), v))
	must(t, c.Create(t.Context(), volume("meanwhile")))
	s.Compact()
	s.Refuse(nil)
	got.await(t, "PoolVolume/after", "PoolVolume/meanwhile")
}

func TestListsHavePages(t *testing.T) {
	_, c := start(t)
	var none v1alpha1.PoolSnapshotList
	must(t, c.List(t.Context(), &none))
	for i := range 7 {
		must(t, c.Create(t.Context(), volume(fmt.Sprint("v", i))))
	}
	var names []string
	page := client.ListOptions{Limit: 3}
	for pages := 1; ; pages++ {
		var list v1alpha1.PoolVolumeList
		must(t, c.List(t.Context(), &list, &page))
		for _, v := range list.Items {
			names = append(names, v.Name)
		}
		if page.Continue = list.Continue; page.Continue == "" {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
	}
	if got := strings.Join(names, " "); got != "v0 v1 v2 v3 v4 v5 v6" {
		t.Errorf("listed %s", got)
	}
}

// TestSelectors: a list has what is selected, and a watch gets what is selected from then on, and what no longer is.
func TestSelectors(t *testing.T) {
	s := apitest.New()
	c, err := s.Client()
	must(t, err)
	with := func(name, pool string, labels map[string]string) *v1alpha1.PoolVolume {
		v := volume(name)
		v.Spec.PoolName, v.Labels = pool, labels
		must(t, c.Create(t.Context(), v))
		return v
	}
	a, b := with("a", "p", map[string]string{"of": "x"}), with("b", "p", nil)
	with("c", "q", map[string]string{"of": "x"})
	var list v1alpha1.PoolVolumeList
	selected := &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "spec.poolName=p", LabelSelector: "of=x"}}
	must(t, c.List(t.Context(), &list, selected))
	if len(list.Items) != 1 || list.Items[0].Name != "a" {
		t.Errorf("selected are %+v", list.Items)
	}
	if err := c.List(t.Context(), &list, &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: "!!"}}); !apierrors.IsBadRequest(err) {
		t.Errorf("no selector: %v", err)
	}
	selected.Raw.ResourceVersion = list.ResourceVersion
	w, err := c.Watch(t.Context(), &v1alpha1.PoolVolumeList{}, selected)
	must(t, err)
	defer w.Stop()
	b.Labels = map[string]string{"of": "x"}
	must(t, c.Update(t.Context(), b))
	b.Spec.ClassName = "other"
	must(t, c.Update(t.Context(), b))
	a.Labels = nil
	must(t, c.Update(t.Context(), a))
	a.Spec.ClassName = "other"
	must(t, c.Update(t.Context(), a))
	b.Finalizers = nil
	must(t, c.Update(t.Context(), b))
	must(t, c.Delete(t.Context(), b))
	for _, want := range []string{"ADDED b", "MODIFIED b", "DELETED a", "MODIFIED b", "DELETED b"} {
		e := <-w.ResultChan()
		v, ok := e.Object.(*v1alpha1.PoolVolume)
		if !ok || fmt.Sprint(e.Type, " ", v.Name) != want {
			t.Fatalf("the watch has %s %T, want %s", e.Type, e.Object, want)
		}
	}
}
