package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// server is an API server with PoolVolumes. Its version is a number that grows with each change.
type server struct {
	mu      sync.Mutex
	version int
	objects map[string]int // by name, with the version of the last change
	history []watch.Event
	// oldest is the version before which a watch cannot begin.
	oldest int
	// failing is the error of the next requests, until it is nil.
	failing error
	lists   int
	watches []*watch.RaceFreeFakeWatcher
}

func newServer(names ...string) *server {
	s := &server{objects: map[string]int{}}
	for _, name := range names {
		s.set(name)
	}
	return s
}

func volume(name string, version int) *v1alpha1.PoolVolume {
	return &v1alpha1.PoolVolume{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)}}
}

func (s *server) set(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := watch.Added
	if s.objects[name] != 0 {
		kind = watch.Modified
	}
	s.objects[name] = s.version
	s.send(watch.Event{Type: kind, Object: volume(name, s.version)})
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	delete(s.objects, name)
	s.send(watch.Event{Type: watch.Deleted, Object: volume(name, s.version)})
}

func (s *server) send(e watch.Event) {
	s.history = append(s.history, e)
	for _, w := range s.watches {
		w.Action(e.Type, e.Object)
	}
}

// cut ends all watches, with an error if there is one.
func (s *server) cut(failing error, compact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = failing
	if compact {
		s.oldest = s.version
		s.history = nil
	}
	for _, w := range s.watches {
		w.Stop()
	}
	s.watches = nil
}

func (s *server) List(_ context.Context, to client.ObjectList, opts ...client.ListOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.failing != nil {
		return s.failing
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	var names []string
	for name := range s.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	list := to.(*v1alpha1.PoolVolumeList)
	list.ResourceVersion = strconv.Itoa(s.version)
	for _, name := range names {
		if name <= o.Continue {
			continue
		}
		if int64(len(list.Items)) == o.Limit {
			list.Continue = list.Items[len(list.Items)-1].Name
			break
		}
		list.Items = append(list.Items, *volume(name, s.objects[name]))
	}
	return nil
}

func (s *server) Watch(_ context.Context, _ client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		return nil, s.failing
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	from, err := strconv.Atoi(o.Raw.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := watch.NewRaceFreeFake()
	if from < s.oldest {
		status := apierrors.NewResourceExpired("too old").Status()
		w.Error(&status)
		return w, nil
	}
	for _, e := range s.history {
		if version, _ := strconv.Atoi(e.Object.(client.Object).GetResourceVersion()); version > from {
			w.Action(e.Type, e.Object)
		}
	}
	w.Action(watch.Bookmark, volume("", s.version))
	s.watches = append(s.watches, w)
	return w, nil
}

// sink keeps what there is.
type sink struct {
	mu   sync.Mutex
	has  map[string]string
	told int
	up   bool
}

func (s *sink) Seen(kind string, object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has[kind+"/"+object.GetName()] = object.GetResourceVersion()
	s.told++
}

func (s *sink) Gone(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.has[kind+"/"+name]; !there {
		panic("gone twice: " + name)
	}
	delete(s.has, kind+"/"+name)
}

func (s *sink) turned(_ string, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = up
}

func (s *sink) want(t *testing.T, when string, api *server, up bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	api.mu.Lock()
	defer api.mu.Unlock()
	want := map[string]string{}
	for name, version := range api.objects {
		want["PoolVolume/"+name] = strconv.Itoa(version)
	}
	if !reflect.DeepEqual(s.has, want) {
		t.Errorf("%s: %d objects are known, and there are %d", when, len(s.has), len(want))
	}
	if s.up != up {
		t.Errorf("%s: watched is %t, want %t", when, s.up, up)
	}
}

func follow(t *testing.T, api *server) (*Watches, *sink) {
	t.Helper()
	s := &sink{has: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	w := Start(ctx, Config{API: api, Sink: s, Up: s.turned, Log: logr.Discard(),
		Kinds: []Kind{{Name: "PoolVolume", List: func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }}}})
	t.Cleanup(func() {
		cancel()
		w.Wait()
	})
	return w, s
}

func isListed(w *Watches) bool {
	select {
	case <-w.Listed():
		return true
	default:
		return false
	}
}

func TestEverythingIsPassedOnInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newServer()
		for i := range 2*pageSize + 7 {
			api.set(fmt.Sprintf("v-%04d", i))
		}
		w, s := follow(t, api)
		synctest.Wait()
		if !isListed(w) || w.Missing() != "" || api.lists != 3 {
			t.Errorf("listed %t, missing %q, after %d pages; want 3", isListed(w), w.Missing(), api.lists)
		}
		s.want(t, "after the list", api, true)
		api.set("v-0001")
		api.set("new")
		api.remove("v-0002")
		synctest.Wait()
		s.want(t, "after changes", api, true)
	})
}

// TestShortPages: of a kind whose objects may be large fewer are in memory at once.
func TestShortPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newServer()
		for i := range 25 {
			api.set(fmt.Sprintf("v-%04d", i))
		}
		s := &sink{has: map[string]string{}}
		w := Start(t.Context(), Config{API: api, Sink: s, Up: s.turned, Log: logr.Discard(), Kinds: []Kind{
			{Name: "PoolVolume", List: func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }, Page: 10},
		}})
		synctest.Wait()
		if !isListed(w) || api.lists != 3 {
			t.Errorf("listed %t after %d pages, want 3", isListed(w), api.lists)
		}
		s.want(t, "after the list", api, true)
	})
}

// TestABrokenWatchGoesOnWhereItWas: without a list, and without a gap.
func TestABrokenWatchGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newServer("a", "b")
		_, s := follow(t, api)
		synctest.Wait()
		api.cut(nil, false)
		api.set("c")
		api.remove("a")
		synctest.Wait()
		s.want(t, "after a watch whose time was over", api, true)
		api.cut(errors.New("no route"), false)
		api.set("d")
		api.remove("b")
		synctest.Wait()
		if s.up {
			t.Error("a watch that cannot be is said to be up")
		}
		time.Sleep(10 * time.Minute)
		api.cut(nil, false)
		time.Sleep(mostPause)
		synctest.Wait()
		s.want(t, "after a break", api, true)
		if api.lists != 1 {
			t.Errorf("%d lists, want 1: the watch can go on", api.lists)
		}
	})
}

// TestDeletionsThatNoWatchSawAreFound: the version has expired, and the next list has fewer objects.
func TestDeletionsThatNoWatchSawAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newServer("a", "b", "c")
		_, s := follow(t, api)
		synctest.Wait()
		api.cut(errors.New("no route"), false)
		api.remove("a")
		api.set("b")
		api.set("e")
		synctest.Wait()
		api.cut(nil, true)
		time.Sleep(3 * mostPause)
		synctest.Wait()
		s.want(t, "after the version has expired", api, true)
		if api.lists != 2 {
			t.Errorf("%d lists, want 2", api.lists)
		}
		api.set("a")
		synctest.Wait()
		s.want(t, "after a change", api, true)
	})
}

// TestNothingIsListedBeforeAllIs: errors are retried, less and less often.
func TestNothingIsListedBeforeAllIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newServer("a")
		volumes := v1alpha1.GroupVersion.WithResource("poolvolumes").GroupResource()
		api.failing = apierrors.NewGenericServerResponse(http.StatusForbidden, "list", volumes,
			"", "no", 0, true)
		w, s := follow(t, api)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if isListed(w) || w.Missing() != "PoolVolume" {
			t.Errorf("listed %t, missing %q", isListed(w), w.Missing())
		}
		if api.lists < 20 || api.lists > 60 {
			t.Errorf("%d attempts in ten minutes", api.lists)
		}
		api.cut(nil, false)
		time.Sleep(mostPause)
		synctest.Wait()
		if !isListed(w) {
			t.Error("not listed")
		}
		s.want(t, "at last", api, true)
	})
}

// TestObjectsOfOneNameInTwoNamespaces are two.
func TestObjectsOfOneNameInTwoNamespaces(t *testing.T) {
	one, two := volume("data", 1), volume("data", 2)
	one.Namespace, two.Namespace = "shop", "bank"
	if a, b := nameOf(one), nameOf(two); a != "shop/data" || b != "bank/data" {
		t.Errorf("they are told as %s and %s", a, b)
	}
}
