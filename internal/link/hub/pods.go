package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
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
}

// PodsConfig is what Pods needs.
type PodsConfig struct {
	Client client.PodsGetter
	// Namespace and Selector say which pods are daemons.
	Namespace, Selector string
}

// Pods watches the pods of the daemons and keeps their names, UIDs and nodes.
type Pods struct {
	pods     client.PodInterface
	selector string
	gone     func(Pod)
	synced   chan struct{}
	sync     sync.Once

	mu    sync.RWMutex
	byUID map[string]Pod
	// byNode counts the pods of each node that have not ended, and replaced says when the last one of
	// a node went.
	byNode   map[string]int
	replaced map[string]time.Time
}

// replacement is how long a node without a pod is still expected. While a DaemonSet replaces its pods
// a node has none, and its volumes are missing all the same.
const replacement = time.Minute

// NewPods returns Pods that know no pod until they run.
func NewPods(c PodsConfig) (*Pods, error) {
	if c.Client == nil || c.Namespace == "" || c.Selector == "" {
		return nil, errors.New("hub: PodsConfig.Client, Namespace and Selector are all required")
	}
	return &Pods{
		pods: c.Client.Pods(c.Namespace), selector: c.Selector, synced: make(chan struct{}),
		byUID: map[string]Pod{}, byNode: map[string]int{}, replaced: map[string]time.Time{},
	}, nil
}

// Run watches until ctx ends. It calls gone for each pod that was deleted.
func (p *Pods) Run(ctx context.Context, gone func(Pod)) {
	p.gone = gone
	reflector := cache.NewReflectorWithOptions(inPages{&cache.ListWatch{
		ListWithContextFunc:  p.list,
		WatchFuncWithContext: p.watch,
	}}, &core.Pod{}, (*podStore)(p), cache.ReflectorOptions{Name: "pods of the daemons"})
	reflector.WatchListPageSize = 500
	reflector.RunWithContext(ctx)
}

// inPages has the reflector list before it watches. client-go would rather begin with a watch that sends all pods, and
// then keeps them all until the last has come.
type inPages struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks for.
func (inPages) IsWatchListSemanticsUnSupported() bool { return true }

// Synced is closed once all pods have been listed.
func (p *Pods) Synced() <-chan struct{} { return p.synced }

// list lists a page. It asks for the state as it is, since the watch cache of an API server gives all
// pods at once, and keeps no more of a page than is needed.
func (p *Pods) list(ctx context.Context, o meta.ListOptions) (runtime.Object, error) {
	o.LabelSelector = p.selector
	if o.ResourceVersion == "0" {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
	list, err := p.pods.List(ctx, o)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		list.Items[i] = *slim(&list.Items[i])
	}
	return list, nil
}

func (p *Pods) watch(ctx context.Context, o meta.ListOptions) (watch.Interface, error) {
	o.LabelSelector = p.selector
	return p.pods.Watch(ctx, o)
}

// slim returns what is needed of a pod.
func slim(pod *core.Pod) *core.Pod {
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion, CreationTimestamp: pod.CreationTimestamp,
		},
		Spec:   core.PodSpec{NodeName: pod.Spec.NodeName},
		Status: core.PodStatus{Phase: pod.Status.Phase},
	}
}

func podOf(pod *core.Pod) Pod {
	return Pod{
		Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName, Created: pod.CreationTimestamp.Time,
		Ended: pod.Status.Phase == core.PodFailed || pod.Status.Phase == core.PodSucceeded,
	}
}

// Pod returns the pod with that UID, if it is known.
func (p *Pods) Pod(uid string) (Pod, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pod, ok := p.byUID[uid]
	return pod, ok
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

// podStore is what the reflector sees of Pods.
type podStore Pods

// Add keeps a pod.
func (s *podStore) Add(object any) error { return s.Update(object) }

// Update keeps a pod as it is now.
func (s *podStore) Update(object any) error {
	pod, ok := object.(*core.Pod)
	if !ok {
		return fmt.Errorf("watch the pods of the daemons: %T is not a pod", object)
	}
	p := (*Pods)(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(podOf(pod))
	return nil
}

// Delete forgets a pod.
func (s *podStore) Delete(object any) error {
	pod, ok := object.(*core.Pod)
	if !ok {
		return fmt.Errorf("watch the pods of the daemons: %T is not a pod", object)
	}
	p := (*Pods)(s)
	p.mu.Lock()
	known := p.drop(string(pod.UID))
	p.mu.Unlock()
	p.gone(cmp.Or(known, podOf(pod)))
	return nil
}

// Replace keeps the pods of a list, and no others.
func (s *podStore) Replace(objects []any, _ string) error {
	listed := make(map[string]Pod, len(objects))
	for _, object := range objects {
		pod, ok := object.(*core.Pod)
		if !ok {
			return fmt.Errorf("list the pods of the daemons: %T is not a pod", object)
		}
		listed[string(pod.UID)] = podOf(pod)
	}
	p := (*Pods)(s)
	var gone []Pod
	p.mu.Lock()
	for uid := range p.byUID {
		if _, ok := listed[uid]; !ok {
			gone = append(gone, p.drop(uid))
		}
	}
	for _, pod := range listed {
		p.set(pod)
	}
	p.mu.Unlock()
	p.sync.Do(func() { close(p.synced) })
	for _, pod := range gone {
		p.gone(pod)
	}
	return nil
}

// Resync does nothing: there is nobody to tell.
func (s *podStore) Resync() error { return nil }

// Transformer returns slim, for what the reflector keeps itself.
func (s *podStore) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*core.Pod); ok {
			return slim(pod), nil
		}
		return object, nil
	}
}
