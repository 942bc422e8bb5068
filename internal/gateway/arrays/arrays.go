package arrays

import (
	"context"
	"errors"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/katbox/katbox/internal/gateway/fleet"
	"github.com/katbox/katbox/internal/lib/follow"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// poolVolumes are the resources, and retainedOnly selects those that are retained.
var poolVolumes = v1alpha1.GroupVersion.WithResource("poolvolumes")

const retainedOnly = "status.state=" + string(v1alpha1.VolumeRetained)

// Config is what Arrays works with. The client is required.
type Config struct {
	Client dynamic.Interface
	Log    logr.Logger
}

// Arrays knows the retained volumes on arrays. Its methods may be called from several goroutines.
type Arrays struct {
	cfg   Config
	ended sync.WaitGroup
	// all: the API server does not select by the state. Only the goroutine of Start uses it, and next.
	all bool
	// next are the volumes of a list that is being read.
	next *index

	mu sync.RWMutex
	// volumes are those that are retained, as far as is known; nil before the first list.
	volumes *index
	// up: they are watched.
	up bool
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

// Missing returns true while what is retained on arrays is not known, or not watched.
func (a *Arrays) Missing() (fleet.Missing, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return fleet.Missing{Node: fleet.Arrays, Reason: fleet.NotListed}, !a.up && !a.absent
}

// There reports whether the cluster has pools, or may have some.
func (a *Arrays) There() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return !a.absent
}

// run follows them until ctx ends.
func (a *Arrays) run(ctx context.Context) {
	client := a.cfg.Client.Resource(poolVolumes)
	follow.Run(ctx, follow.Config[*unstructured.Unstructured]{
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			page, err := client.List(ctx, a.selecting(o))
			if apierrors.IsBadRequest(err) && !a.all {
				a.all = true
				a.cfg.Log.Info("the API server cannot select PoolVolumes by their state, and sends all of them; "+
					"from Kubernetes 1.31 on, with the definitions of this version, it does not", logkeys.Cause, volume.OneLine(err))
				page, err = client.List(ctx, a.selecting(o))
			}
			if apierrors.IsNotFound(err) {
				a.set(nil, true)
			}
			return page, err
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, a.selecting(o))
		},
		Listing: func() { a.next = newIndex() },
		Seen:    func(object *unstructured.Unstructured) { a.put(object.GetName(), keptOf(object)) },
		Gone:    func(_ string, object *unstructured.Unstructured) { a.put(object.GetName(), nil) },
		Listed:  func() { a.set(a.next, false); a.next = nil },
		Up:      a.setUp,
		Log:     a.cfg.Log, Name: "the retained volumes on arrays", Meanwhile: "lists name them as missing",
		Expected: apierrors.IsNotFound,
	})
}

// selecting adds what selects the retained volumes, where the API server can. It lists them from its memory then.
func (a *Arrays) selecting(o metav1.ListOptions) metav1.ListOptions {
	if a.all {
		return o
	}
	o.FieldSelector = retainedOnly
	if o.ResourceVersion == "" && o.Continue == "" {
		o.ResourceVersion = "0"
	}
	return o
}

// put says what a volume is now: nil if it is gone, or is not retained any more.
func (a *Arrays) put(name string, now *entry) {
	if a.next != nil {
		a.next.put(name, now)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.volumes.put(name, now)
}

// set replaces what is known.
func (a *Arrays) set(volumes *index, absent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.volumes, a.absent = volumes, absent
}

func (a *Arrays) setUp(up bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.up = up
}
