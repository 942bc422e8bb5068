package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/testing/apitest"
)

// sink keeps what there is, and which kinds are watched.
type sink struct {
	mu  sync.Mutex
	has []string
	up  map[string]bool
}

func (s *sink) Seen(kind string, object client.Object) { s.add(kind + " " + nameOf(object)) }
func (s *sink) Gone(kind, name string)                 { s.add(kind + " " + name + " is gone") }

func (s *sink) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has = append(s.has, what)
}

func (s *sink) turned(kind string, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up[kind] = up
}

// want wants this to have come, in any order, and nothing else since the last call.
func (s *sink) want(t *testing.T, what ...string) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.has)
	slices.Sort(what)
	if !slices.Equal(s.has, what) {
		t.Errorf("passed on are %q, want %q", s.has, what)
	}
	s.has = nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestKinds: each kind is followed for itself, with its own pages, and all are listed when the last one is.
func TestKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.New()
		api, err := server.Client()
		must(t, err)
		for n := range 3 {
			must(t, api.Create(t.Context(), &v1alpha1.PoolVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("v", n)}}))
		}
		for _, namespace := range []string{"shop", "bank"} {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}}
			must(t, api.Create(t.Context(), claim))
		}
		var mu sync.Mutex
		var pages []string
		refused := true
		server.Refuse(func(r *http.Request) error {
			mu.Lock()
			defer mu.Unlock()
			query := r.URL.Query()
			if query.Get("watch") != "" {
				return nil
			}
			claims := strings.HasSuffix(r.URL.Path, "persistentvolumeclaims")
			if claims && refused {
				return errors.New("away")
			}
			pages = append(pages, query.Get("limit"))
			return nil
		})
		s := &sink{up: map[string]bool{}}
		ctx, cancel := context.WithCancel(t.Context())
		w := Start(ctx, Config{API: api, Sink: s, Up: s.turned, Log: logr.Discard(), Kinds: []Kind{
			{Name: "PoolVolume", List: func() client.ObjectList { return &v1alpha1.PoolVolumeList{} }, Page: 2},
			{Name: "PersistentVolumeClaim", List: func() client.ObjectList {
				list := &metav1.PartialObjectMetadataList{}
				list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
				return list
			}},
			{Name: "Pool", List: func() client.ObjectList { return &v1alpha1.PoolList{} }},
		}})
		defer w.Wait()
		defer cancel()
		s.want(t, "PoolVolume v0", "PoolVolume v1", "PoolVolume v2")
		isListed := func() bool {
			select {
			case <-w.Listed():
				return true
			default:
				return false
			}
		}
		if w.Missing() != "PersistentVolumeClaim" || isListed() || !reflect.DeepEqual(s.up, map[string]bool{"PoolVolume": true, "Pool": true}) {
			t.Errorf("missing %q, listed %t, watched are %v", w.Missing(), isListed(), s.up)
		}
		mu.Lock()
		refused = false
		mu.Unlock()
		time.Sleep(time.Minute)
		s.want(t, "PersistentVolumeClaim bank/data", "PersistentVolumeClaim shop/data")
		if slices.Sort(pages); w.Missing() != "" || !isListed() || !slices.Equal(pages, []string{"2", "2", "500", "500"}) {
			t.Errorf("missing %q, listed %t, pages of %q", w.Missing(), isListed(), pages)
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
		must(t, api.Delete(t.Context(), claim))
		must(t, api.Create(t.Context(), &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}))
		s.want(t, "PersistentVolumeClaim shop/data is gone", "Pool p")
	})
}
