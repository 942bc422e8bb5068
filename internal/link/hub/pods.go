package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/katbox/katbox/internal/lib/follow"
)

// ErrNoPod: there is no such pod.
var ErrNoPod = errors.New("there is no such pod")

// Pod is the pod of a daemon.
type Pod struct {
	Name, UID string
	// Node is empty until the pod is on one.
	Node    string
	Created time.Time
	// Ended: it has failed, or is done, and another takes its place.
	Ended bool
	// Leaving: it is being deleted.
	Leaving bool
	// Heard is when the API server has last said how the pods are; zero if this is not known.
	Heard time.Time
}

// PodsConfig is what Pods needs.
type PodsConfig struct {
	Client client.PodsGetter
	// Namespace and Selector say which pods are daemons.
	Namespace, Selector string
	// Log gets failures to list and watch them.
	Log logr.Logger
}

// Pods watches the pods of the daemons and keeps their names, UIDs and nodes.
type Pods struct {
	pods     client.PodInterface
	selector string
	log      logr.Logger
	gone     func(Pod)
	synced   chan struct{}
	sync     sync.Once

	mu    sync.RWMutex
	byUID map[string]Pod
	// byNode counts the pods of each node that have not ended, and replaced says when the last one of
	// a node went.
	byNode   map[string]int
	replaced map[string]time.Time
	// heard is when the API server has last said how the pods are, listing when the list that runs began.
	heard, listing time.Time
}

// replacement is how long a node without a pod is still expected. While a DaemonSet replaces its pods
// a node has none, and its volumes are missing all the same.
const replacement = time.Minute

// watchTime is how long a watch lasts, up to twice that. With the bookmark before its end the API server is heard within
// [believed], also where no pod changes, and where thousands of nodes make it slow.
const watchTime = 10 * time.Second

// NewPods returns Pods that know no pod until they run.
func NewPods(c PodsConfig) (*Pods, error) {
	if c.Client == nil || c.Namespace == "" || c.Selector == "" {
		return nil, errors.New("hub: PodsConfig.Client, Namespace and Selector are all required")
	}
	return &Pods{
		pods: c.Client.Pods(c.Namespace), selector: c.Selector, log: c.Log, synced: make(chan struct{}),
		byUID: map[string]Pod{}, byNode: map[string]int{}, replaced: map[string]time.Time{},
	}, nil
}

// Run watches until ctx ends. It calls gone for each pod that was deleted.
func (p *Pods) Run(ctx context.Context, gone func(Pod)) {
	p.gone = gone
	follow.Run(ctx, follow.Config[*core.Pod]{
		List: func(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
			o.LabelSelector = p.selector
			return p.pods.List(ctx, o)
		},
		Watch: func(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
			o.LabelSelector = p.selector
			return p.pods.Watch(ctx, o)
		},
		Key:     func(pod *core.Pod) string { return string(pod.UID) },
		Seen:    p.see,
		Gone:    p.lose,
		Listing: func() { p.listing = time.Now() },
		Listed: func() {
			// The pages of a list are as things were when it began.
			p.hear(p.listing)
			p.sync.Do(func() { close(p.synced) })
		},
		Heard: func() { p.hear(time.Now()) },
		Time:  watchTime,
		Log:   p.log, Name: "the pods of the daemons",
	})
}

// Synced is closed once all pods have been listed.
func (p *Pods) Synced() <-chan struct{} { return p.synced }

func podOf(pod *core.Pod) Pod {
	return Pod{
		Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Created: pod.CreationTimestamp.Time,
		Ended: pod.Status.Phase == core.PodFailed || pod.Status.Phase == core.PodSucceeded, Leaving: pod.DeletionTimestamp != nil,
	}
}

// Pod returns the pod with that UID, if it is known.
func (p *Pods) Pod(uid string) (Pod, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pod, ok := p.byUID[uid]
	pod.Heard = p.heard
	return pod, ok
}

// hear notes when the API server has said how the pods are.
func (p *Pods) hear(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = at
}

// Read asks the API server for a pod.
func (p *Pods) Read(ctx context.Context, name string) (Pod, error) {
	pod, err := p.pods.Get(ctx, name, meta.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Pod{}, fmt.Errorf("pod %s: %w", name, ErrNoPod)
	case err != nil:
		return Pod{}, fmt.Errorf("read pod %s: %w", name, err)
	}
	return podOf(pod), nil
}

// Nodes returns since when each node should run a daemon.
func (p *Pods) Nodes() (map[string]time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := make(map[string]time.Time, len(p.byNode))
	for node, at := range p.replaced {
		if time.Since(at) > replacement {
			delete(p.replaced, node)
			continue
		}
		since[node] = at
	}
	for _, pod := range p.byUID {
		if at, ok := since[pod.Node]; pod.Node != "" && !pod.Ended && (!ok || pod.Created.Before(at)) {
			since[pod.Node] = pod.Created
		}
	}
	return since, p.isSynced()
}

// Expects reports whether the node should run a daemon, or this is not known yet.
func (p *Pods) Expects(node string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	at, replaced := p.replaced[node]
	return p.byNode[node] > 0 || replaced && time.Since(at) <= replacement || !p.isSynced()
}

func (p *Pods) isSynced() bool {
	select {
	case <-p.synced:
		return true
	default:
		return false
	}
}

// set keeps a pod. The caller holds the lock.
func (p *Pods) set(pod Pod) {
	p.drop(pod.UID)
	p.byUID[pod.UID] = pod
	p.countNode(pod, 1)
}

// drop forgets a pod and returns what was known of it. The caller holds the lock.
func (p *Pods) drop(uid string) Pod {
	pod, ok := p.byUID[uid]
	if ok {
		delete(p.byUID, uid)
		p.countNode(pod, -1)
	}
	return pod
}

func (p *Pods) countNode(pod Pod, by int) {
	if pod.Node == "" || pod.Ended {
		return
	}
	if p.byNode[pod.Node] += by; p.byNode[pod.Node] == 0 {
		delete(p.byNode, pod.Node)
		p.replaced[pod.Node] = time.Now()
	} else {
		delete(p.replaced, pod.Node)
	}
}

// see keeps a pod as it is now.
func (p *Pods) see(pod *core.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(podOf(pod))
}

// lose forgets a pod.
func (p *Pods) lose(uid string, _ *core.Pod) {
	p.mu.Lock()
	pod := p.drop(uid)
	p.mu.Unlock()
	p.gone(pod)
}
