package watch

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

const (
	// pageSize is how many objects are asked for at once, unless their kind says: a page takes a few MiB while it is
	// decoded.
	pageSize = 500
	// The API server ends a watch after a time between watchTime and twice that; then the next begins.
	watchTime = 5 * time.Minute
	// leastPause and mostPause bound the time between two attempts.
	leastPause = time.Second
	mostPause  = 30 * time.Second
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
	// Page is how many are asked for at once where anybody may make large ones; 0 for the usual number.
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
		one := &follower{cfg: cfg, kind: kind, known: map[string]uint32{}, log: cfg.Log.WithValues("kind", kind.Name),
			listed: func() { w.wasListed(kind.Name) }}
		w.ended.Go(func() { one.run(ctx) })
	}
	return w
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

// follower follows one kind.
type follower struct {
	cfg    Config
	kind   Kind
	log    logr.Logger
	listed func()
	// known has the names of all objects that there are, with the number of the list in which each was
	// seen last.
	known map[string]uint32
	list  uint32
	// failures in a row; up is what was told last, and cause what was logged last.
	failures int
	up       bool
	cause    string
}

// run lists all objects and follows their changes, again and again until ctx ends.
func (f *follower) run(ctx context.Context) {
	version := ""
	for ctx.Err() == nil {
		var err error
		if version == "" {
			version, err = f.all(ctx)
		}
		if err == nil {
			version, err = f.follow(ctx, version)
		}
		if err != nil && ctx.Err() == nil {
			f.failed(ctx, err)
		}
	}
}

// all passes all objects on, page by page, and forgets those that there are no more. It returns the
// version from which on they can be followed.
func (f *follower) all(ctx context.Context) (version string, err error) {
	f.list++
	page := client.ListOptions{Limit: cmp.Or(f.kind.Page, pageSize)}
	for {
		list := f.kind.List()
		if err := f.cfg.API.List(ctx, list, &page); err != nil {
			return "", fmt.Errorf("list: %w", err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("the list has a %T", item)
			}
			f.seen(object)
			return nil
		}); err != nil {
			return "", err
		}
		page.Continue, version = list.GetContinue(), list.GetResourceVersion()
		if page.Continue == "" {
			break
		}
	}
	for name, list := range f.known {
		if list != f.list {
			f.gone(name)
		}
	}
	f.listed()
	return version, nil
}

func (f *follower) seen(object client.Object) {
	f.known[nameOf(object)] = f.list
	f.cfg.Sink.Seen(f.kind.Name, object)
}

// nameOf tells an object from others of its kind.
func nameOf(object client.Object) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

func (f *follower) gone(name string) {
	delete(f.known, name)
	f.cfg.Sink.Gone(f.kind.Name, name)
}

// follow watches one time, and returns the version up to which changes have been passed on; none, where
// a list has to come next.
func (f *follower) follow(ctx context.Context, version string) (string, error) {
	limit := int64(watchTime.Seconds() * (1 + rand.Float64()))
	changes, err := f.cfg.API.Watch(ctx, f.kind.List(), &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &limit,
	}})
	if err != nil {
		return next(version, err), fmt.Errorf("watch: %w", err)
	}
	defer changes.Stop()
	f.tell(true)
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case change, ok := <-changes.ResultChan():
			if !ok {
				return version, nil // its time is over
			}
			if change.Type == watch.Error {
				err := apierrors.FromObject(change.Object)
				return next(version, err), fmt.Errorf("watch: %w", err)
			}
			object, isObject := change.Object.(client.Object)
			if !isObject {
				return "", fmt.Errorf("the watch has a %T", change.Object)
			}
			f.failures = 0
			version = object.GetResourceVersion()
			switch change.Type {
			case watch.Added, watch.Modified:
				f.seen(object)
			case watch.Deleted:
				f.gone(nameOf(object))
			}
		}
	}
}

// next is the version from which to go on after an error of a watch: none if the API server does not
// have that any more.
func next(version string, err error) string {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	return version
}

// failed waits before the next attempt. That a version has expired is in the nature of things, and an
// error is logged once.
func (f *follower) failed(ctx context.Context, err error) {
	pause := min(leastPause<<min(f.failures, 10), mostPause)
	f.failures++
	f.tell(false)
	if cause := err.Error(); cause != f.cause && next("x", err) != "" {
		f.cause = cause
		f.log.Info("cannot follow the changes of objects, trying again", logkeys.Cause, cause)
	}
	waiting, cancel := context.WithTimeout(ctx, pause/2+rand.N(pause/2))
	defer cancel()
	<-waiting.Done()
}

// tell reports a change of whether the kind is watched.
func (f *follower) tell(up bool) {
	if up == f.up {
		return
	}
	f.up = up
	f.cfg.Up(f.kind.Name, up)
	if up && f.cause != "" {
		f.cause = ""
		f.log.Info("follows the changes of objects again")
	}
}
