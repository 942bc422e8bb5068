package owners

import (
	"context"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/model/volume"
)

// ended is what the watch of pods that end has shown of one. Whose namespace it was in is found out when a node asks.
type ended struct {
	fact
	created time.Time
}

func endedBytes(i identity, e ended) int { return factBytes(i, e.fact) }

// Ended takes note of a pod that has ended, and may be gone before a node's question about it has its turn. It asks no
// one, and does not wait.
func (o *Owners) Ended(pod *core.Pod) {
	e := ended{
		fact:    fact{namespace: pod.Namespace, pod: pod.Name, node: pod.Spec.NodeName, owner: ownerOf(pod, "")},
		created: pod.CreationTimestamp.Time,
	}
	id := identity{podUID: string(pod.UID)}
	if mirrored, ok := pod.Annotations[core.MirrorPodAnnotationKey]; ok { // as in read
		if len(mirrored) > mostUID {
			return
		}
		id = identity{mirrored, e.node}
	}
	o.ended.put(id, e)
}

// hasEnded returns what the watch has shown of a pod that has ended, if that confirms what the node says. All else is for the API
// server: it alone contradicts a node as long as it has the pod. A static pod's UID is in an annotation, which who may
// make pods may write as well.
func (o *Owners) hasEnded(ctx context.Context, q question) (f fact, ok bool, err error) {
	e, ok := o.ended.get(identity{podUID: q.podUID})
	if !ok || e.about(q).Verdict != volume.Confirmed {
		return fact{}, false, nil
	}
	return o.confirm(ctx, e)
}

// wasSeen returns what the watch has shown of a pod that is gone. static: the UID is that of a static pod.
func (o *Owners) wasSeen(ctx context.Context, q question) (f fact, static, ok bool, err error) {
	e, ok := o.ended.get(identity{podUID: q.podUID})
	if !ok {
		static = true
		if e, ok = o.ended.get(identity{q.podUID, q.node}); !ok {
			return fact{}, false, false, nil
		}
	}
	f, ok, err = o.confirm(ctx, e)
	return f, static, ok, err
}

// confirm adds the namespace of a pod that has ended. That has to be older than the pod: else it is a later one of the name.
func (o *Owners) confirm(ctx context.Context, e ended) (f fact, ok bool, err error) {
	tenancy, there, err := o.Namespaces.Lookup(ctx, e.namespace)
	if err != nil {
		return fact{}, false, err
	}
	if !there || tenancy.UID == "" || !tenancy.Since.Before(e.created) {
		return fact{}, false, nil
	}
	e.owner.Verdict, e.owner.NamespaceUID = volume.Confirmed, tenancy.UID
	return e.fact, true, nil
}
