package outcomes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/link/hub"
	"github.com/katbox/katbox/internal/model/api"
)

// Config is what Outcomes need.
type Config struct {
	// Pods reads pods of all namespaces.
	Pods client.PodsGetter
	// Nodes get the outcomes.
	Nodes Nodes
	// Ended is called for each pod with inline CSI volumes that is seen to have ended, once while it is
	// remembered; deleted says that there is none of it any more. It must not wait: the watch does. It
	// may be nil.
	Ended func(pod *core.Pod, deleted bool)
	// Metrics may be nil.
	Metrics *gatewaymetrics.Metrics
	// Log may be the zero Logger.
	Log logr.Logger
}

// Nodes are the nodes that are connected, and some that are not.
type Nodes interface {
	// Tell tells a node how pods have ended. Its error wraps ErrAway if the node is not connected, and
	// ErrRefused if the node will not take them.
	Tell(ctx context.Context, node string, o api.Outcomes) error
	// KeepsEnds reports whether a node keeps how pods end: false only of one that is connected and does not.
	KeepsEnds(node string) bool
}

var (
	// ErrAway: the node is not connected.
	ErrAway = hub.ErrAway
	// ErrRefused: the node does not take outcomes, because it has another source or is an older version.
	ErrRefused = hub.ErrRefused
)

const (
	// memory is how long an outcome is remembered.
	memory = 10 * time.Minute
	// batch is how many outcomes a node gets at once, and batchBytes about how long these are: it takes
	// no more than 1 MiB. tellLimit is how long that may take.
	batch      = 500
	batchBytes = 512 << 10
	tellLimit  = 30 * time.Second
)

// room is how many outcomes one takes the place of, where their memory is bounded: a pod may have
// hundreds of volumes, and long messages.
func room(o api.PodOutcome) int { return max(1, len(o.Volumes)/4+len(o.End)/1024) }

// batchOf returns as many of the items as a node gets at once.
func batchOf(items []api.PodOutcome) []api.PodOutcome {
	length := 0
	for i, o := range items[:min(len(items), batch)] {
		length += 100 + len(o.PodUID) + len(o.End)
		for _, name := range o.Volumes {
			length += 3 + len(name)
		}
		for _, name := range o.Drivers {
			length += 3 + len(name)
		}
		if i > 0 && length > batchBytes {
			return items[:i]
		}
	}
	return items[:min(len(items), batch)]
}

// limits say how many outcomes are remembered, those in all by the room that they take; tests lower them.
type limits struct{ ofNode, inAll int }

var usualLimits = limits{ofNode: 2000, inAll: 100_000}

// Outcomes tells nodes how their pods have ended.
type Outcomes struct {
	Config
	waits  retry.Backoff
	limits limits
	// ctx ends with Close.
	ctx   context.Context
	close context.CancelFunc
	tasks sync.WaitGroup

	mu    sync.Mutex
	nodes map[string]*recent
	// order are all that are remembered, the oldest first. What a node has forgotten before its time is
	// still in it.
	order []ref
	// count is the room that all take.
	count int
}

// ref is the pod with a number of a node.
type ref struct {
	node   string
	number uint64
	came   time.Time
}

// recent are the pods of a node that have ended lately.
type recent struct {
	// items have the numbers from first on.
	items []api.PodOutcome
	first uint64
	known map[string]struct{} // by pod UID
	// next is the number of the first item that the node was not told; connects counts its connections.
	next     uint64
	connects uint64
	// telling: a goroutine tells the node.
	telling bool
}

// New returns Outcomes that know of no pod.
func New(c Config) (*Outcomes, error) {
	if c.Pods == nil || c.Nodes == nil {
		return nil, errors.New("outcomes: Config.Pods and Config.Nodes are required")
	}
	o := &Outcomes{Config: c, waits: usualWaits, limits: usualLimits, nodes: map[string]*recent{}}
	o.ctx, o.close = context.WithCancel(context.Background())
	return o, nil
}

// Close ends what is being told to nodes.
func (o *Outcomes) Close() {
	o.mu.Lock()
	o.close() // no goroutine begins from now on
	o.mu.Unlock()
	o.tasks.Wait()
}

// Connected tells a node that has connected all that is remembered of its pods. It does not block.
func (o *Outcomes) Connected(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.nodes[node]
	if r == nil {
		return
	}
	r.next, r.connects = r.first, r.connects+1
	o.tell(node, r)
}

// remembers reports whether it is remembered how a pod has ended.
func (o *Outcomes) remembers(node, uid string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.nodes[node]
	if r == nil {
		return false
	}
	_, known := r.known[uid]
	return known
}

// add remembers how a pod has ended, and tells its node. It returns false for a pod that is remembered.
func (o *Outcomes) add(node string, how api.PodOutcome) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.nodes[node]
	if r == nil {
		r = &recent{known: map[string]struct{}{}}
		o.nodes[node] = r
	}
	if _, ok := r.known[how.PodUID]; ok {
		return false
	}
	o.order = append(o.order, ref{node, r.first + uint64(len(r.items)), time.Now()})
	r.items, r.known[how.PodUID], o.count = append(r.items, how), struct{}{}, o.count+room(how)
	if len(r.items) > o.limits.ofNode {
		o.forgetFirst(r)
	}
	for o.count > o.limits.inAll || len(o.order) > 2*o.limits.inAll {
		o.forgetOldest()
	}
	o.tell(node, r)
	return true
}

// forgetFirst forgets the oldest item of a node. The caller holds the lock.
func (o *Outcomes) forgetFirst(r *recent) {
	delete(r.known, r.items[0].PodUID)
	o.count -= room(r.items[0])
	r.items[0] = api.PodOutcome{}
	r.items, r.first = r.items[1:], r.first+1
	if r.next < r.first {
		r.next = r.first
		o.Metrics.OutcomesTold(gatewaymetrics.Forgotten, 1)
	}
}

// forgetOldest forgets the oldest of all. The caller holds the lock.
func (o *Outcomes) forgetOldest() {
	oldest := o.order[0]
	o.order = o.order[1:]
	r := o.nodes[oldest.node]
	if r == nil || oldest.number < r.first {
		return // it is forgotten
	}
	o.forgetFirst(r)
	if len(r.items) == 0 && !r.telling {
		delete(o.nodes, oldest.node)
	}
}

// forgetOld forgets what is old, until ctx ends.
func (o *Outcomes) forgetOld(ctx context.Context) {
	look := time.NewTicker(memory / 20)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			o.forgetBefore(now.Add(-memory))
		}
	}
}

func (o *Outcomes) forgetBefore(then time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.order) > 0 && o.order[0].came.Before(then) {
		o.forgetOldest()
	}
	o.order = slices.Clone(o.order)
}

// tell sees to it that a goroutine tells the node. The caller holds the lock.
func (o *Outcomes) tell(node string, r *recent) {
	if !r.telling && o.ctx.Err() == nil {
		r.telling = true
		o.tasks.Go(func() { o.tellAll(node, r) })
	}
}

// tellAll tells a node all that it was not told, or until it is not connected.
func (o *Outcomes) tellAll(node string, r *recent) {
	failures := 0
	for {
		o.mu.Lock()
		told := r.next
		items := slices.Clone(batchOf(r.items[r.next-r.first:]))
		connects := r.connects
		if len(items) == 0 || o.ctx.Err() != nil {
			o.endTelling(node, r)
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()

		ctx, cancel := context.WithTimeout(o.ctx, tellLimit)
		err := o.Nodes.Tell(ctx, node, api.Outcomes{Items: items})
		cancel()

		o.mu.Lock()
		same := r.connects == connects
		switch {
		case same && (err == nil || errors.Is(err, ErrRefused)):
			r.next = max(r.first, told+uint64(len(items)))
		case same && errors.Is(err, ErrAway):
			// It gets them when it connects.
			o.endTelling(node, r)
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		switch {
		case err == nil:
			failures = 0
			o.Metrics.OutcomesTold(gatewaymetrics.Accepted, len(items))
		case errors.Is(err, ErrRefused):
			o.Metrics.OutcomesTold(gatewaymetrics.Refused, len(items))
		case !errors.Is(err, ErrAway):
			failures++
			o.Log.V(1).Info("a node was not told how its pods have ended; trying again", logkeys.Node, node, logkeys.Cause, err.Error())
			_ = retry.Pause(o.ctx, o.waits.After(failures))
		}
	}
}

// endTelling says that the node's goroutine ends. The caller holds the lock.
func (o *Outcomes) endTelling(node string, r *recent) {
	r.telling = false
	if len(r.items) == 0 {
		delete(o.nodes, node)
	}
}
