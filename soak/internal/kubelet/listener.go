package kubelet

import "github.com/katbox/katbox/soak/internal/history"

// Listener is told what happens. All methods are called by many goroutines.
type Listener interface {
	// Called is told of each answer, by the goroutine of the operation: the
	// kubelet does nothing else with the volume until it returns, unless a call
	// was doubled or reordered. It is not told of calls that the kubelet's own
	// crash ended. A call for a staged or attached volume belongs to a pod that
	// uses it, or was the last to.
	Called(v *Volume, c history.Call)
	// Mounted is told when all volumes of a pod are mounted, at most once by
	// each kubelet. It runs in a goroutine that is the listener's from then on:
	// it may block as long as it likes, and a crash does not wait for it.
	Mounted(p *Pod)
	// Unmounted is told once for each volume that is no longer desired, when
	// it is down as far as the kubelet knows.
	Unmounted(v *Volume, how Outcome)
	// Gone is told when the kubelet has no volume and no directory of the pod
	// left, and no call for it is on its way. Of a pod that was forgotten
	// directories may be left. It is the last that is told of the pod's inline
	// volumes; unstaging and detaching may follow.
	Gone(p *Pod)
}
