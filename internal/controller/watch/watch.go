package watch

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/follow"
)

// API is the Kubernetes API; a client.WithWatch is one.
type API interface {
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
	Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error)
}

// Sink takes what is told. Its methods are called by one goroutine for each kind, and should not block.
type Sink interface {
	// Seen tells that there is an object. It is the sink's from then on.
	Seen(kind string, object client.Object)
	// Gone tells that there is no object of a name any more; namespace/name where it is in a namespace.
	Gone(kind, name string)
}

// Kind is one kind of objects.
type Kind struct {
	// Name is passed to the sink.
	Name string
	// List returns an empty list of such objects.
	List func() client.ObjectList
	// Page is how many are asked for at once where users may make large ones; 0 for the usual number.
	Page int64
}

// Config is what Watches work with.
type Config struct {
	API   API
	Kinds []Kind
	Sink  Sink
	// Up is told whenever a kind is watched again, or no more.
	Up  func(kind string, up bool)
	Log logr.Logger
}

// Watches follow all kinds.
type Watches struct {
	cfg    Config
	listed chan struct{}
	ended  sync.WaitGroup

	mu sync.Mutex
	// waiting are the kinds that have not been listed yet.
	waiting map[string]bool
}

// Start follows all kinds until ctx ends. It waits for an API server that does not answer.
func Start(ctx context.Context, cfg Config) *Watches {
	w := &Watches{cfg: cfg, listed: make(chan struct{}), waiting: map[string]bool{}}
	for _, kind := range cfg.Kinds {
		w.waiting[kind.Name] = true
	}
	for _, kind := range cfg.Kinds {
		w.ended.Go(func() { follow.Run(ctx, w.of(kind)) })
	}
	return w
}

// of says how a kind is followed.
func (w *Watches) of(kind Kind) follow.Config[client.Object] {
	return follow.Config[client.Object]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := kind.List()
			return list, w.cfg.API.List(ctx, list, &client.ListOptions{Limit: o.Limit, Continue: o.Continue})
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return w.cfg.API.Watch(ctx, kind.List(), &client.ListOptions{Raw: &o})
		},
		Page:   kind.Page,
		Key:    nameOf,
		Seen:   func(object client.Object) { w.cfg.Sink.Seen(kind.Name, object) },
		Gone:   func(name string, _ client.Object) { w.cfg.Sink.Gone(kind.Name, name) },
		Listed: func() { w.wasListed(kind.Name) },
		Up:     func(up bool) { w.cfg.Up(kind.Name, up) },
		Log:    w.cfg.Log, Name: kind.Name + " objects",
	}
}

// nameOf is namespace/name, where an object is in a namespace.
func nameOf(object client.Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// Listed is closed once every object of every kind has been passed on.
func (w *Watches) Listed() <-chan struct{} { return w.listed }

// Missing names the kinds that have not been listed yet.
func (w *Watches) Missing() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kinds []string
	for _, kind := range w.cfg.Kinds {
		if w.waiting[kind.Name] {
			kinds = append(kinds, kind.Name)
		}
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}

// Wait waits for the end, after that of the context.
func (w *Watches) Wait() { w.ended.Wait() }

func (w *Watches) wasListed(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.waiting[kind] {
		return
	}
	delete(w.waiting, kind)
	if len(w.waiting) == 0 {
		close(w.listed)
	}
}
