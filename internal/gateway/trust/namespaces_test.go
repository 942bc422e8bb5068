package trust_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/katbox/katbox/internal/gateway/trust"
)

var (
	resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	made     = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
)

func namespace(name, uid string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(made),
			Labels: map[string]string{"team": "x"}, Annotations: map[string]string{"long": strings.Repeat("x", 1000)}},
	}
}

func newMetadata(objects ...runtime.Object) *fake.FakeMetadataClient {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	return fake.NewSimpleMetadataClient(scheme, objects...)
}

func newNamespaces(t *testing.T, client *fake.FakeMetadataClient) *trust.Namespaces {
	t.Helper()
	n, err := trust.NewNamespaces(trust.NamespacesConfig{Client: client, Log: new(lines).logger()})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gets counts the questions about single namespaces.
func gets(client *fake.FakeMetadataClient) int {
	n := 0
	for _, action := range client.Actions() {
		if action.GetVerb() == "get" {
			n++
		}
	}
	return n
}

func is(n *trust.Namespaces, name, uid string) func() bool {
	return func() bool {
		tenancy, known := n.Tenancy(name)
		return known == (uid != "") && tenancy.UID == uid
	}
}

func TestNamespacesAreWatched(t *testing.T) {
	client := newMetadata(namespace("ci", "1"))
	n := newNamespaces(t, client)
	if n.Synced() {
		t.Error("synced before Start")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer n.Wait()
	defer cancel()
	n.Start(ctx)
	eventually(t, "the namespaces are known", n.Synced)
	eventually(t, "the namespaces are watched", watched(client))
	tenancy, known := n.Tenancy("ci")
	if since := made.Add(10 * time.Minute); !known || tenancy.UID != "1" || !tenancy.Since.Equal(since) {
		t.Errorf("%v %v, want it since %v", tenancy, known, since)
	}
	if _, known := n.Tenancy("other"); known {
		t.Error("a namespace that there is not")
	}
	tracker := client.Tracker()
	// Deleted and made again: from the event on it is another.
	if err := tracker.Delete(resource, "", "ci"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is gone", is(n, "ci", ""))
	if err := tracker.Create(resource, namespace("ci", "2"), ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is another", is(n, "ci", "2"))
	if tenancy, exists, err := n.Lookup(ctx, "ci"); tenancy.UID != "2" || !exists || err != nil {
		t.Errorf("%v %v %v", tenancy, exists, err)
	}
	if asked := gets(client); asked != 1 {
		t.Errorf("%d GETs for one lookup", asked)
	}
}

// TestLookupDoesNotTrustTheWatch: the watch is interrupted, and a namespace is deleted and made again.
// Who may read in the new one is shown nothing of the old one.
func TestLookupDoesNotTrustTheWatch(t *testing.T) {
	client := newMetadata(namespace("ci", "1"))
	silent := watch.NewFake() // no event ever comes
	client.PrependWatchReactor("namespaces", func(clienttesting.Action) (bool, watch.Interface, error) { return true, silent, nil })
	n := newNamespaces(t, client)
	ctx, cancel := context.WithCancel(t.Context())
	defer n.Wait()
	defer cancel()
	n.Start(ctx)
	eventually(t, "the namespaces are known", n.Synced)
	if err := client.Tracker().Delete(resource, "", "ci"); err != nil {
		t.Fatal(err)
	}
	if err := client.Tracker().Create(resource, namespace("ci", "2"), ""); err != nil {
		t.Fatal(err)
	}
	if tenancy, exists, err := n.Lookup(ctx, "ci"); tenancy.UID != "2" || !exists || err != nil {
		t.Errorf("%v %v %v", tenancy, exists, err)
	}
}

// TestLookupOfTerminating: an answer about a namespace that is being deleted is not kept.
func TestLookupOfTerminating(t *testing.T) {
	ending := namespace("ci", "1")
	ending.DeletionTimestamp = &metav1.Time{Time: made}
	client := newMetadata(ending)
	n := newNamespaces(t, client)
	for i := range 2 {
		if tenancy, exists, err := n.Lookup(t.Context(), "ci"); tenancy.UID != "1" || !exists || err != nil || gets(client) != i+1 {
			t.Errorf("%v, %v, %v, asked %d times", tenancy, exists, err, gets(client))
		}
	}
}

// TestSlowLookup: the age of an answer counts from when the question was put.
func TestSlowLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newMetadata(namespace("ci", "1"))
		client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(3 * time.Second)
			return false, nil, nil
		})
		n := newNamespaces(t, client)
		for _, wait := range []time.Duration{0, 2*time.Second - time.Millisecond} {
			time.Sleep(wait)
			if _, exists, err := n.Lookup(t.Context(), "ci"); !exists || err != nil || gets(client) != 1 {
				t.Errorf("%v, %v, asked %d times", exists, err, gets(client))
			}
		}
		time.Sleep(2 * time.Millisecond)
		if _, exists, err := n.Lookup(t.Context(), "ci"); !exists || err != nil || gets(client) != 2 {
			t.Errorf("an answer is used for more than 5 s: %v, %v, asked %d times", exists, err, gets(client))
		}
	})
}

func TestLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newMetadata(namespace("new", "1"))
		n := newNamespaces(t, client)
		lookup := func(name, uid string, asked int) {
			t.Helper()
			tenancy, exists, err := n.Lookup(t.Context(), name)
			if exists != (uid != "") || tenancy.UID != uid || err != nil {
				t.Errorf("%s: %v %v %v", name, tenancy, exists, err)
			}
			if !is(n, name, uid)() {
				t.Errorf("%s: Tenancy says otherwise", name)
			}
			if got := gets(client); got != asked {
				t.Errorf("%s: asked %d times, want %d", name, got, asked)
			}
		}
		lookup("new", "1", 1)
		lookup("new", "1", 1)
		lookup("missing", "", 2)
		time.Sleep(2*time.Second - time.Millisecond)
		lookup("missing", "", 2)
		if err := client.Tracker().Create(resource, namespace("missing", "2"), ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
		lookup("missing", "2", 3)
		lookup("new", "1", 3)
		time.Sleep(3 * time.Second)
		if _, known := n.Tenancy("new"); known {
			t.Error("an answer is kept for more than 5 s")
		}
		lookup("new", "1", 4)
		for _, name := range []string{"", ".", "..", "../secrets", "a/b", "A", strings.Repeat("a", 64)} {
			lookup(name, "", 4)
		}
	})
}

func TestLookupWithoutAPIServer(t *testing.T) {
	refused := errors.New("connection refused")
	client := newMetadata(namespace("new", "1"))
	away := true
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, refused
	})
	n := newNamespaces(t, client)
	if _, exists, err := n.Lookup(t.Context(), "new"); exists || !errors.Is(err, trust.ErrUnavailable) || !errors.Is(err, refused) {
		t.Error(exists, err)
	}
	away = false
	if tenancy, exists, err := n.Lookup(t.Context(), "new"); tenancy.UID != "1" || !exists || err != nil {
		t.Error(tenancy, exists, err)
	}
}
