package kubelet

import (
	"context"
	"time"
)

// operation does something that may take long. What it found out is applied to
// the actual state by the function that it returns, which the owner calls.
type operation func(ctx context.Context) (apply func(), err error)

// carryOut starts the operation of an action, if nothing is in its way.
func (k *Kubelet) carryOut(ctx context.Context, a action, now time.Time) {
	v := a.volume
	switch a.kind {
	case unmountVolume:
		k.start(ctx, now, v.key(), v.Pod, a.kind, k.unmount(v))
	case abandonVolume:
		k.start(ctx, now, v.key(), v.Pod, a.kind, k.abandon(v))
	case verifyAttach:
		k.start(ctx, now, v.sharedKey(), v.Pod, a.kind, k.verify(v))
	case mountVolume:
		k.start(ctx, now, v.sharedKey(), v.Pod, a.kind, k.mount(v))
	case unmountDevice:
		k.start(ctx, now, key{volume: a.handle}, nil, a.kind, k.unmountDevice(a.handle))
	case detachDevice:
		if !k.pending.busy(key{volume: a.handle}) {
			delete(k.actual.devices, a.handle)
		}
	case startPod:
		if !k.started[a.pod] {
			k.started[a.pod] = true
			go k.cfg.Listener.Mounted(a.pod)
		}
	case removePod:
		k.startLast(ctx, now, a, k.remove(a.pod))
	case dropPod:
		k.startLast(ctx, now, a, k.drop(a.pod))
	}
}

// key is that of operations on the volume of one pod.
func (v *Volume) key() key { return key{volume: v.Plan.ID, pod: v.Pod.Plan.UID} }

// sharedKey is that of operations that concern all pods that use the volume. A
// persistent volume may have to be staged, so mounts of it go one by one
// (kubernetes operation_executor.go, MountVolume).
func (v *Volume) sharedKey() key {
	if v.Plan.Persistent {
		return key{volume: v.Plan.ID}
	}
	return v.key()
}

// start starts an operation, unless another one is in its way or it has to wait.
// The pod is that for which it is, or nil.
func (k *Kubelet) start(ctx context.Context, now time.Time, about key, p *Pod, name kind, do operation) {
	if !k.pending.begin(about, string(name), now) {
		return
	}
	k.underway[p]++
	k.group.Go(func() {
		apply, err := do(ctx)
		k.post(func() {
			k.pending.end(about, err != nil, time.Now())
			if k.underway[p]--; k.underway[p] == 0 {
				delete(k.underway, p)
			}
			apply()
		})
	})
}

// startLast starts an operation on a pod once there is no other for it.
func (k *Kubelet) startLast(ctx context.Context, now time.Time, a action, do operation) {
	if k.underway[a.pod] == 0 {
		k.start(ctx, now, key{pod: a.pod.Plan.UID}, a.pod, a.kind, do)
	}
}
