package arrays

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// poolVolumes are the resources, and retainedOnly selects those that are retained.
var poolVolumes = v1alpha1.GroupVersion.WithResource("poolvolumes")

const retainedOnly = "status.state=" + string(v1alpha1.VolumeRetained)

const (
	// pageSize is how many are asked for at once where the API server cannot select.
	pageSize = 500
	// The API server ends a watch after a time between watchTime and twice that; then the next begins.
	watchTime = 5 * time.Minute
	// leastPause and mostPause bound the time between two attempts. absentPause is how often a cluster without pools
	// is asked whether it has some now.
	leastPause  = time.Second
	mostPause   = 30 * time.Second
	absentPause = 30 * time.Second
	// shortWatch is how long a watch lasts at least. One that ends sooner was not ended by its time.
	shortWatch = time.Second
)

// Config is what Arrays works with. The client is required.
type Config struct {
	Client dynamic.Interface
	Log    logr.Logger
}

// Arrays knows the retained volumes on arrays. Its methods may be called from several goroutines.
type Arrays struct {
	cfg   Config
	ended sync.WaitGroup
	// all: the API server does not select by the state.
	all bool

	mu sync.RWMutex
	// volumes are those that are retained, as far as is known; nil before the first list.
	volumes *index
	// behind: they could not be followed, and are not read again yet.
	behind bool
	// absent: the cluster has no pools.
	absent bool
}

// New returns an Arrays that knows nothing until Start.
func New(cfg Config) (*Arrays, error) {
	if cfg.Client == nil {
		return nil, errors.New("arrays: Config.Client is missing")
	}
	return &Arrays{cfg: cfg}, nil
}

// Start begins to follow them, until ctx ends. It does not wait for them.
func (a *Arrays) Start(ctx context.Context) { a.ended.Go(func() { a.run(ctx) }) }

// Wait returns when what Start has begun has ended.
func (a *Arrays) Wait() { a.ended.Wait() }

// Missing returns true while it is not known what is retained on arrays by now.
func (a *Arrays) Missing() (fleet.Missing, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return fleet.Missing{Node: fleet.Arrays, Reason: fleet.NotListed}, (a.volumes == nil || a.behind) && !a.absent
}

// There reports whether the cluster has pools, or may have some.
func (a *Arrays) There() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return !a.absent
}

// run lists and follows, again and again until ctx ends.
func (a *Arrays) run(ctx context.Context) {
	failures, cause := 0, ""
	for ctx.Err() == nil {
		version, err := a.list(ctx)
		if err == nil {
			failures, cause = 0, ""
		}
		for err == nil && ctx.Err() == nil {
			version, err = a.follow(ctx, version)
		}
		pause := min(leastPause<<min(failures, 10), mostPause)
		failures++
		switch {
		case ctx.Err() != nil:
			return
		case apierrors.IsNotFound(err):
			a.set(nil, true)
			pause, cause = absentPause, ""
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err): // in the nature of things
		case err.Error() != cause:
			cause = err.Error()
			a.cfg.Log.Info("the retained volumes on arrays cannot be followed, trying again", logkeys.Cause, volume.OneLine(err))
		}
		a.fallBehind()
		waiting, cancel := context.WithTimeout(ctx, pause/2+rand.N(pause/2))
		<-waiting.Done()
		cancel()
	}
}

// set replaces what is known.
func (a *Arrays) set(volumes *index, absent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.volumes, a.absent, a.behind = volumes, absent, false
}

func (a *Arrays) fallBehind() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behind = true
}

// list reads all that are retained, and returns the version from which on they can be followed.
func (a *Arrays) list(ctx context.Context) (version string, err error) {
	client, volumes := a.cfg.Client.Resource(poolVolumes), newIndex()
	options := metav1.ListOptions{FieldSelector: retainedOnly, ResourceVersion: "0"} // from the API server's memory
	if a.all {
		options = metav1.ListOptions{Limit: pageSize}
	}
	for {
		page, err := client.List(ctx, options)
		if apierrors.IsBadRequest(err) && !a.all {
			a.all = true
			a.cfg.Log.Info("the API server cannot select PoolVolumes by their state, and sends all of them; "+
				"from Kubernetes 1.31 on, with the definitions of this version, it does not", logkeys.Cause, volume.OneLine(err))
			return a.list(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("list: %w", err)
		}
		for i := range page.Items {
			volumes.put(page.Items[i].GetName(), keptOf(&page.Items[i]))
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			a.set(volumes, false)
			return page.GetResourceVersion(), nil
		}
	}
}

// follow watches one time, and returns the version up to which changes are known.
func (a *Arrays) follow(ctx context.Context, version string) (string, error) {
	limit := int64(watchTime.Seconds() * (1 + rand.Float64()))
	options := metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &limit}
	if !a.all {
		options.FieldSelector = retainedOnly
	}
	changes, err := a.cfg.Client.Resource(poolVolumes).Watch(ctx, options)
	if err != nil {
		return "", fmt.Errorf("watch: %w", err)
	}
	defer changes.Stop()
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case change, ok := <-changes.ResultChan():
			if !ok && time.Since(began) < shortWatch {
				return "", errors.New("the API server has ended the watch at once")
			}
			if !ok {
				return version, nil // its time is over
			}
			object, isObject := change.Object.(*unstructured.Unstructured)
			switch {
			case change.Type == watch.Error:
				return "", fmt.Errorf("watch: %w", apierrors.FromObject(change.Object))
			case !isObject:
				return "", fmt.Errorf("the watch has a %T", change.Object)
			}
			version = object.GetResourceVersion()
			a.changed(change.Type, object)
		}
	}
}

// changed takes in what a watch tells.
func (a *Arrays) changed(kind watch.EventType, object *unstructured.Unstructured) {
	var now *entry // of one that is gone, or retained no more
	switch kind {
	case watch.Added, watch.Modified:
		now = keptOf(object)
	case watch.Deleted:
	default:
		return // a bookmark
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.volumes != nil {
		a.volumes.put(object.GetName(), now)
	}
}
