package podevents

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	lru "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/wait"
	client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
)

// Config is what Events need.
type Config struct {
	// Client writes events in all namespaces. It should not have a limit of its own.
	Client     client.EventsGetter
	Namespaces Namespaces
	// Driver is the name of the CSI driver whose inline volumes are meant.
	Driver string
	// Metrics may be nil.
	Metrics *gatewaymetrics.Metrics
	// Log may be the zero Logger.
	Log logr.Logger
}

// Namespaces knows what the namespaces want.
type Namespaces interface {
	// Synced reports whether all namespaces are known that there were at the start.
	Synced() bool
	// NoPodEvents reports whether there are to be no events in a namespace. It does not wait.
	NoPodEvents(namespace string) bool
}

const (
	// mostWaiting bounds the events that wait for the API server, each of which has 2 KiB at most.
	mostWaiting = 256
	// writeLimit bounds one request, and syncInterval is the time between two looks whether the
	// namespaces are known.
	writeLimit   = 10 * time.Second
	syncInterval = 100 * time.Millisecond

	// The gateway's bucket is for a cluster where very much fails; the API server has other things to do
	// then. A namespace's lets the pods of a large Job have one each, and keeps one that fails all day
	// from filling the list of events.
	perSecond, burst = 10, 100
	namespaceEvery   = 10 * time.Second
	namespaceBurst   = 20
	// mostNamespaces bounds the buckets. After forgetBucket one is full again, and need not be kept.
	mostNamespaces = 4096
	forgetBucket   = namespaceBurst * namespaceEvery

	// complaintEvery is the time between two lines in the log.
	complaintEvery = time.Minute
)

// Events writes events on pods that have failed.
type Events struct {
	Config
	queue chan *core.Event
	ended sync.WaitGroup

	// What follows is of the goroutine that writes alone.
	all        *rate.Limiter
	namespaces *lru.LRUExpireCache
	complaints *rate.Limiter
}

// New returns Events that write nothing until Start.
func New(c Config) (*Events, error) {
	if c.Client == nil || c.Namespaces == nil || c.Driver == "" {
		return nil, errors.New("podevents: Config.Client, Config.Namespaces and Config.Driver are required")
	}
	return &Events{
		Config: c, queue: make(chan *core.Event, mostWaiting), all: rate.NewLimiter(perSecond, burst),
		namespaces: lru.NewLRUExpireCache(mostNamespaces), complaints: rate.NewLimiter(rate.Every(complaintEvery), 1),
	}, nil
}

// Start begins to write, until ctx ends.
func (e *Events) Start(ctx context.Context) { e.ended.Go(func() { e.run(ctx) }) }

// Wait returns when all has ended that Start has begun.
func (e *Events) Wait() { e.ended.Wait() }

// Ended takes note of a pod that has ended; deleted says that there is none of it any more. It does not
// wait, and keeps nothing of the pod but some of its words.
func (e *Events) Ended(pod *core.Pod, deleted bool) {
	event := eventOf(pod, deleted, e.Driver, time.Now())
	if event == nil {
		return
	}
	select {
	case e.queue <- event:
	default:
		e.Metrics.PodEvent(gatewaymetrics.Limited)
	}
}

// run writes what is in the queue. It begins once it is known which namespaces want none.
func (e *Events) run(ctx context.Context) {
	synced := func(context.Context) (bool, error) { return e.Namespaces.Synced(), nil }
	if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) != nil {
		return // ctx has ended
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.queue:
			if !e.Namespaces.NoPodEvents(event.Namespace) {
				e.write(ctx, event)
			}
		}
	}
}

// write writes an event, if there are not too many.
func (e *Events) write(ctx context.Context, event *core.Event) {
	if !e.bucket(event.Namespace).Allow() || !e.all.Allow() {
		e.Metrics.PodEvent(gatewaymetrics.Limited)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	_, err := e.Client.Events(event.Namespace).Create(ctx, event, meta.CreateOptions{})
	switch {
	case err == nil:
		e.Metrics.PodEvent(gatewaymetrics.Written)
	case apierrors.IsAlreadyExists(err):
		e.Metrics.PodEvent(gatewaymetrics.Known)
	case apierrors.HasStatusCause(err, core.NamespaceTerminatingCause), apierrors.IsNotFound(err):
		e.Metrics.PodEvent(gatewaymetrics.Gone)
	default:
		e.Metrics.PodEvent(gatewaymetrics.Failed)
		if e.complaints.Allow() {
			e.Log.Info("an event that says where the files of a failed pod are was not written, and will not be; others may follow",
				logkeys.Namespace, event.Namespace, "object", event.InvolvedObject.Kind+"/"+event.InvolvedObject.Name,
				logkeys.Cause, err.Error())
		}
	}
}

// bucket returns that of a namespace.
func (e *Events) bucket(namespace string) *rate.Limiter {
	bucket, ok := e.namespaces.Get(namespace)
	if !ok {
		bucket = rate.NewLimiter(rate.Every(namespaceEvery), namespaceBurst)
	}
	e.namespaces.Add(namespace, bucket, forgetBucket)
	return bucket.(*rate.Limiter)
}
