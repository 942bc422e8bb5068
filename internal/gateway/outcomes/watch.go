package outcomes

import (
	"context"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/katbox/katbox/internal/lib/follow"
	"github.com/katbox/katbox/internal/lib/retry"
)

const (
	// selector selects the pods that have ended, and those whose node is lost.
	selector = "status.phase!=Running,status.phase!=Pending"
	// page is how many pods of a list are decoded at once: some 1 MiB, and 75 MiB where each is as large as
	// a user can make it.
	page = 50
)

// usualWaits are those between attempts to watch, and to tell a node; tests shorten them.
var usualWaits = retry.Backoff{First: time.Second, Longest: 30 * time.Second, Jitter: 0.5}

// Run watches until ctx ends.
func (o *Outcomes) Run(ctx context.Context) {
	go o.forgetOld(ctx)
	o.Metrics.OutcomeSource(false)
	pods := o.Pods.Pods(meta.NamespaceAll)
	follow.Run(ctx, follow.Config[*core.Pod]{
		List: func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return pods.List(ctx, options)
		},
		Watch: func(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return pods.Watch(ctx, options)
		},
		Page: page, Waits: o.waits,
		Seen: func(pod *core.Pod) { o.see(pod, false) },
		Gone: func(_ string, pod *core.Pod) { o.see(pod, true) },
		Up:   o.Metrics.OutcomeSource,
		Log:  o.Log, Name: "the pods that have ended", Meanwhile: "how pods end may stay unknown",
	})
}

// see takes note of a pod.
func (o *Outcomes) see(pod *core.Pod, deleted bool) {
	node := pod.Spec.NodeName
	how, ok := ofPod(pod)
	if !ok || o.remembers(node, how.PodUID) {
		return
	}
	if o.Nodes.KeepsEnds(node) {
		how.End = encodeEnd(pod, how.PodUID)
	}
	if o.add(node, how) && o.Ended != nil {
		o.Ended(pod, deleted)
	}
}
