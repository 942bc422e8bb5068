package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// pageSize is the usual limit of a page: a few MiB while it is decoded.
	pageSize = 500
	// pageLimit bounds the time for a page.
	pageLimit = time.Minute
	// The API server usually ends a watch after a time between watchTime and twice that; then the next begins. One that it
	// does not end is given up watchGrace later.
	watchTime  = 5 * time.Minute
	watchGrace = time.Minute
	// shortWatch is how long a watch lasts at least. One that ends sooner was not ended by its time.
	shortWatch = time.Second
)

// usualWaits are those between attempts.
var usualWaits = retry.Backoff{First: time.Second, Longest: 30 * time.Second, Jitter: 0.5}

// Config says what to follow, and who takes it. List, Watch, Seen and Gone are required. Run calls all functions from its
// goroutine, and does not go on while one runs.
type Config[T metav1.Object] struct {
	// List reads a page and Watch begins a watch. They add the selectors to the options.
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Page is the limit of a page; 0 is the usual one. Where users make the objects as large as they like it should be small.
	Page int64
	// Time is how long a watch lasts, up to twice that; 0 is the usual time. The API server sends a bookmark before it ends a watch:
	// a shorter time proves more often that nothing was missed.
	Time time.Duration
	// Waits are those between attempts; the zero value stands for the usual ones.
	Waits retry.Backoff

	// Key returns what identifies an object. With it deletions are found that no watch has seen; without it they are not.
	Key func(T) string
	// Seen takes an object that is there: one of a list, or one that was added or modified. It may keep it.
	Seen func(T)
	// Gone takes the key of one that is not there any more. The object is as it was last, if a watch has seen the deletion, and
	// else the zero value.
	Gone func(key string, last T)
	// Listing is called before each list, and Listed when all of its objects were passed on, and all keys that it lacks. Both may
	// be nil. A list that fails begins anew.
	Listing, Listed func()
	// Heard is called after each event of a watch was passed on, and after each bookmark. It may be nil.
	Heard func()
	// Up is called when a watch begins after a time without, and when that ends by a failure. It may be nil.
	Up func(up bool)

	// Log gets the failures, with Name as the plural of what is followed, and Meanwhile as what that means to users, if anything.
	Log             logr.Logger
	Name, Meanwhile string
	// Expected reports whether a failure to list or watch is nothing to log. It may be nil.
	Expected func(error) bool
}

// Run follows the objects until ctx ends. It waits for an API server that does not answer.
func Run[T metav1.Object](ctx context.Context, c Config[T]) {
	if c.Waits == (retry.Backoff{}) {
		c.Waits = usualWaits
	}
	f := &follower[T]{Config: c, known: map[string]uint32{}}
	for ctx.Err() == nil {
		if err := f.once(ctx); err != nil && ctx.Err() == nil {
			f.failed(ctx, err)
		}
	}
}

// follower is what Run knows.
type follower[T metav1.Object] struct {
	Config[T]
	// listed: the objects up to version were passed on.
	listed  bool
	version string
	// known are the keys of all objects that are there, each with the number of the list in which it was seen last.
	known map[string]uint32
	list  uint32
	// failures in a row; up is what was reported last, and cause what was logged last.
	failures int
	up       bool
	cause    string
}

// once lists, where that is necessary, and watches one time.
func (f *follower[T]) once(ctx context.Context) error {
	if !f.listed {
		if err := f.listAll(ctx); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	if err := f.watch(ctx); err != nil {
		f.listed = !expired(err)
		return fmt.Errorf("watch: %w", err)
	}
	return nil
}

// expired reports whether the API server does not have a version any more.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// listAll passes all objects on, and the keys of those that are not there any more.
func (f *follower[T]) listAll(ctx context.Context) error {
	f.list++
	if f.Listing != nil {
		f.Listing()
	}
	options := metav1.ListOptions{Limit: cmp.Or(f.Page, pageSize)}
	for {
		page, err := f.page(ctx, options)
		if err != nil {
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			f.listed, f.version = true, page.GetResourceVersion()
			break
		}
	}
	var unseen T
	for key, list := range f.known {
		if list != f.list {
			delete(f.known, key)
			f.Gone(key, unseen)
		}
	}
	if f.Listed != nil {
		f.Listed()
	}
	return nil
}

// page passes the objects of one page on.
func (f *follower[T]) page(ctx context.Context, options metav1.ListOptions) (metav1.ListInterface, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	list, err := f.List(ctx, options)
	if err != nil {
		return nil, err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	return about, meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := any(item).(T)
		if !ok {
			return fmt.Errorf("the API server sent a %T", item)
		}
		f.seen(object)
		return nil
	})
}

func (f *follower[T]) seen(object T) {
	if f.Key != nil {
		f.known[f.Key(object)] = f.list
	}
	f.Seen(object)
}

func (f *follower[T]) gone(object T) {
	key := ""
	if f.Key != nil {
		key = f.Key(object)
		delete(f.known, key)
	}
	f.Gone(key, object)
}

// watch watches one time. Its error is nil if the watch has ended because its time was over.
func (f *follower[T]) watch(ctx context.Context) error {
	limit := cmp.Or(f.Time, watchTime)
	limit += retry.Below(limit)
	seconds := int64(limit / time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit+watchGrace)
	defer cancel()
	changes, err := f.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	defer changes.Stop()
	f.turn(true)
	began := time.Now()
	err = f.take(ctx, changes)
	switch {
	case time.Since(began) >= shortWatch:
		f.failures = 0
		f.works()
	case err == nil && ctx.Err() == nil:
		err = errors.New("the API server ended it at once")
	}
	return err
}

// take passes on the changes of a watch.
func (f *follower[T]) take(ctx context.Context, changes watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			if change.Type == watch.Error {
				return apierrors.FromObject(change.Object)
			}
			object, ok := any(change.Object).(T)
			if !ok {
				return fmt.Errorf("the API server sent a %T", change.Object)
			}
			f.works()
			f.version = object.GetResourceVersion()
			switch change.Type {
			case watch.Added, watch.Modified:
				f.seen(object)
			case watch.Deleted:
				f.gone(object)
			}
			if f.Heard != nil {
				f.Heard()
			}
		}
	}
}

// failed waits before the next attempt. A version that has expired is nothing to log.
func (f *follower[T]) failed(ctx context.Context, err error) {
	f.failures++
	f.turn(false)
	wait := f.Waits.After(f.failures)
	if cause := volume.OneLine(err); cause != f.cause && !expired(err) && (f.Expected == nil || !f.Expected(err)) {
		f.cause = cause
		text := "cannot list and watch " + f.Name + "; retrying"
		if f.Meanwhile != "" {
			text += "; meanwhile " + f.Meanwhile
		}
		f.Log.Info(text, logkeys.Cause, cause, logkeys.Interval, duration.Format(wait.Round(time.Second)))
	}
	_ = retry.Pause(ctx, wait)
}

// works logs the end of failures.
func (f *follower[T]) works() {
	if f.cause != "" {
		f.cause = ""
		f.Log.Info("watching " + f.Name + " again")
	}
}

// turn reports whether the objects are watched.
func (f *follower[T]) turn(up bool) {
	if up != f.up && f.Up != nil {
		f.Up(up)
	}
	f.up = up
}
