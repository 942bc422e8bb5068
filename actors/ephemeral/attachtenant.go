package ephemeral

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
)

// A namespace that is deleted and made again has the same name and another UID. A publish brings the
// name alone. Where a gateway has confirmed of which namespace a retained volume is, it is asked the same
// about the pod that wants to attach it, and nothing is mounted before it has answered.

const (
	// tenantWait bounds how long a publish waits for that answer, tenantPause is the time between two
	// looks. A gateway answers in a fraction of a second, or the kubelet tries again.
	tenantWait  = 5 * time.Second
	tenantPause = 50 * time.Millisecond
	// tenantAgain is after how long a gateway that has not answered is asked again.
	tenantAgain = 2 * time.Second
	// mostTenantPods bounds the pods that are asked about, tenantKept how long an answer is known after the
	// pod's last publish. A kubelet has a few hundred pods, and waits two minutes at most between two tries.
	mostTenantPods = 1024
	tenantKept     = 5 * time.Minute
)

// errNotTold is why a publish waits. [Node.Publish] tries again for a while.
var errNotTold = fmt.Errorf("%w", volume.ErrUnavailable)

// tenantPods are the pods that want to attach a volume of which a gateway knows the namespace.
type tenantPods struct {
	all map[volume.PodUID]tenantPod
}

type tenantPod struct {
	owner volume.Owner
	// seen is when it tried to publish last, asked when a gateway was asked last.
	seen, asked time.Time
}

func newTenantPods() *tenantPods { return &tenantPods{all: map[volume.PodUID]tenantPod{}} }

// seen notes a try to publish. It is false if there are too many pods.
func (t *tenantPods) seen(pod volume.PodUID, now time.Time) (tenantPod, bool) {
	is, known := t.all[pod]
	if !known && len(t.all) >= mostTenantPods {
		for old, was := range t.all {
			if now.Sub(was.seen) > tenantKept {
				delete(t.all, old)
			}
		}
		if len(t.all) >= mostTenantPods {
			return tenantPod{}, false
		}
	}
	is.seen = now
	t.all[pod] = is
	return is, true
}

// told takes over what a gateway says of a pod that is waited for. A pod that it denies is asked about
// again with the next publish: the pod may be younger than what the gateway has looked at.
func (t *tenantPods) told(pod volume.PodUID, owner volume.Owner) bool {
	is, ok := t.all[pod]
	if ok {
		is.owner = is.owner.Learn(owner)
		t.all[pod] = is
	}
	return ok
}

// ofOneNamespace refuses a pod that is not known to be of the very namespace that the volume is of.
func (v *volumes) ofOneNamespace(p volume.Publication, source volume.Owner) error {
	if source.Verdict != volume.Confirmed {
		return nil
	}
	now := time.Now()
	pod, ok := v.tenantPods.seen(p.Pod, now)
	switch {
	case !ok:
		return fmt.Errorf("%w: %d other pods want to attach volumes; try again", volume.ErrUnavailable, mostTenantPods)
	case pod.owner.Verdict == volume.Confirmed && pod.owner.NamespaceUID == source.NamespaceUID:
		return nil
	case pod.owner.Verdict == volume.Confirmed:
		return errNotRetainedThere(p)
	case pod.owner.Verdict == volume.Denied:
		delete(v.tenantPods.all, p.Pod)
		return errNotRetainedThere(p)
	}
	if now.Sub(pod.asked) >= tenantAgain {
		if v.AskOwner == nil || !v.AskOwner(volume.Record{
			ID: p.ID, Pod: p.Pod, Namespace: p.Namespace, PodName: p.PodName, VolumeName: p.VolumeName, Phase: volume.Publishing,
		}) {
			return fmt.Errorf("%w: no gateway is connected to this node that could say whether pod %s is of the namespace %s that volume %s is of; "+
				"see that the gateway runs and that the node reaches it; the kubelet tries again",
				volume.ErrUnavailable, p.Pod, p.Namespace, p.Attach.ID)
		}
		pod.asked = now
		v.tenantPods.all[p.Pod] = pod
	}
	return fmt.Errorf("%w: no gateway has said yet whether pod %s is of the namespace %s that volume %s is of; "+
		"see that the gateway runs; the kubelet tries again",
		errNotTold, p.Pod, p.Namespace, p.Attach.ID)
}

// tellsOfTenant takes over an answer about a pod whose volume is not published yet, because of that.
func (v *volumes) tellsOfTenant(m *messages.OwnVolume) (done bool) {
	if !v.tenantPods.told(m.Pod, m.Owner) || v.supervisor.IsAwake(m.ID) {
		return false
	}
	if _, known := v.look(m.ID); known {
		return false
	}
	m.Send(struct{}{}, nil)
	return true
}

// publishWhenTold publishes a volume that shows the data of another one.
func (n *Node) publishWhenTold(ctx context.Context, p volume.Publication) error {
	for began := time.Now(); ; {
		err := n.publish(ctx, p)
		if !errors.Is(err, errNotTold) || time.Since(began) >= tenantWait || retry.Pause(ctx, tenantPause) != nil {
			return err
		}
	}
}
