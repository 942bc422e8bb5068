package follow

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/apitest"
)

// scene is an API server with PoolVolumes, and what a follower has passed on of them.
type scene struct {
	t      *testing.T
	server *apitest.Server
	client client.WithWatch

	mu sync.Mutex
	// has are the objects that were seen and are not gone, by name, with their versions; last are the gone ones of a watch.
	has  map[string]string
	last map[string]string
	// lists and watches are the requests, the watches with their versions.
	lists   int
	watches []string
	// refuse answers requests to list ("list") or watch ("watch").
	refuse func(verb string) error
	// replaced stands in for the server's watch.
	replaced func(version string) watch.Interface
	listing  int
	listed   int
	up       bool
	ups      int
	log      []string
}

func newScene(t *testing.T, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, server: apitest.New(), has: map[string]string{}, last: map[string]string{}}
	var err error
	if s.client, err = s.server.Client(); err != nil {
		t.Fatal(err)
	}
	s.server.Refuse(func(r *http.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		verb := ""
		switch query := r.URL.Query(); {
		case query.Get("watch") != "":
			verb, s.watches = "watch", append(s.watches, query.Get("resourceVersion"))
		case query.Get("limit") != "":
			verb, s.lists = "list", s.lists+1
		}
		if verb != "" && s.refuse != nil {
			return s.refuse(verb)
		}
		return nil
	})
	for _, name := range names {
		s.create(name)
	}
	return s
}

// poolVolume is an object with this name.
func poolVolume(name string) *v1alpha1.PoolVolume {
	return &v1alpha1.PoolVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) create(name string) {
	s.t.Helper()
	s.must(s.client.Create(s.t.Context(), poolVolume(name)))
}

func (s *scene) remove(name string) {
	s.t.Helper()
	s.must(s.client.Delete(s.t.Context(), poolVolume(name)))
}

func (s *scene) change(name string) {
	s.t.Helper()
	v := poolVolume(name)
	s.must(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(v), v))
	v.Spec.PoolName += "x"
	s.must(s.client.Update(s.t.Context(), v))
}

// fails lets requests fail from now on, and cuts the watches.
func (s *scene) fails(refuse func(verb string) error) {
	s.set(func() { s.refuse = refuse })
	s.server.Cut()
}

func (s *scene) set(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// config follows the PoolVolumes.
func (s *scene) config() Config[*v1alpha1.PoolVolume] {
	return Config[*v1alpha1.PoolVolume]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.PoolVolumeList{}
			return list, s.client.List(ctx, list, &client.ListOptions{Limit: o.Limit, Continue: o.Continue})
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			var w watch.Interface
			s.set(func() {
				if s.replaced != nil {
					w = s.replaced(o.ResourceVersion)
				}
			})
			if w != nil {
				return w, nil
			}
			return s.client.Watch(ctx, &v1alpha1.PoolVolumeList{}, &client.ListOptions{Raw: &o})
		},
		Key: func(v *v1alpha1.PoolVolume) string { return v.Name },
		Seen: func(v *v1alpha1.PoolVolume) {
			s.set(func() { s.has[v.Name] = v.ResourceVersion })
		},
		Gone: func(name string, last *v1alpha1.PoolVolume) {
			s.set(func() {
				if _, there := s.has[name]; !there {
					s.t.Errorf("%s is gone twice", name)
				}
				delete(s.has, name)
				if last != nil {
					s.last[name] = last.ResourceVersion
				}
			})
		},
		Listing: func() { s.set(func() { s.listing++ }) },
		Listed:  func() { s.set(func() { s.listed++ }) },
		Up:      func(up bool) { s.set(func() { s.up = up; s.ups++ }) },
		Log:     funcr.New(func(_, line string) { s.set(func() { s.log = append(s.log, line) }) }, funcr.Options{}),
		Name:    "volumes", Meanwhile: "they are old",
	}
}

// follow follows them until the test ends.
func (s *scene) follow(adjust ...func(*Config[*v1alpha1.PoolVolume])) {
	c := s.config()
	for _, change := range adjust {
		change(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { Run(ctx, c) })
	s.t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	synctest.Wait()
}

// want compares what was passed on with what there is.
func (s *scene) want(when string, up bool) {
	s.t.Helper()
	synctest.Wait()
	var list v1alpha1.PoolVolumeList
	s.must(s.client.List(s.t.Context(), &list))
	there := map[string]string{}
	for _, v := range list.Items {
		there[v.Name] = v.ResourceVersion
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !reflect.DeepEqual(s.has, there) {
		s.t.Errorf("%s: passed on are %d objects, and there are %d", when, len(s.has), len(there))
	}
	if s.up != up {
		s.t.Errorf("%s: watched is %t, want %t", when, s.up, up)
	}
}

// logged counts lines.
func (s *scene) logged(part string) int { return strings.Count(strings.Join(s.log, "\n"), part) }

func away(string) error { return apierrors.NewServiceUnavailable("no route") }
