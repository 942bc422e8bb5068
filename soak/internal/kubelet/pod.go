package kubelet

import (
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/internal/workload"
)

// Pod is a pod that was or will be on the node.
type Pod struct {
	Plan    workload.Pod
	Volumes []*Volume

	// finished and forgotten are closed by the API, each at most once.
	finished  chan struct{}
	forgotten chan struct{}
}

// Volume is one volume of one pod. Pods that share a persistent volume have one
// each, with the same volume ID.
type Volume struct {
	Plan workload.Volume
	Pod  *Pod
	// Story gets every call and phase; its Target is where the driver has to
	// mount the volume.
	Story *history.Volume

	outcome   atomic.Int32
	publish   treatment
	unpublish treatment
	// sent is the last publish, which a late repetition repeats.
	sent atomic.Pointer[csi.NodePublishVolumeRequest]
}

// Outcome says what became of a volume that is no longer desired.
type Outcome int32

// The outcomes. The zero value is none of them.
const (
	// Unpublished: an unpublish succeeded, and the target is gone.
	Unpublished Outcome = iota + 1
	// StillMounted: an unpublish succeeded, but the target is a mount point
	// all the same. The kubelet looks no further, as the real one does, and
	// leaves the directories until the mount is gone.
	StillMounted
	// NeverMounted: the kubelet has reason to believe that nothing is mounted,
	// so that no unpublish comes.
	NeverMounted
	// Forgotten: no unpublish ever comes, whatever is mounted; see
	// [Kubelet.Forget].
	Forgotten
)

// String is the name for stories and reports.
func (o Outcome) String() string {
	switch o {
	case Unpublished:
		return "unpublished"
	case StillMounted:
		return "unpublished, but still mounted"
	case NeverMounted:
		return "never mounted"
	case Forgotten:
		return "forgotten"
	}
	return "unknown"
}

// NewPod makes the pod of a plan. The root is the kubelet's directory, work the
// driver's working directory, where the data of inline volumes are.
func NewPod(root, work string, p workload.Pod) *Pod {
	pod := newPod(p)
	for _, plan := range p.Volumes {
		v := pod.add(root, plan)
		if !plan.Persistent && !plan.Attaches() {
			v.Story.Data = filepath.Join(work, p.UID, plan.ID)
		}
	}
	return pod
}

func newPod(p workload.Pod) *Pod {
	return &Pod{Plan: p, finished: make(chan struct{}), forgotten: make(chan struct{})}
}

// add gives the pod a volume.
func (p *Pod) add(root string, plan workload.Volume) *Volume {
	v := &Volume{Plan: plan, Pod: p}
	v.Story = &history.Volume{
		ID:        plan.ID,
		Namespace: p.Plan.Namespace,
		PodName:   p.Plan.Name,
		Pod:       p.Plan.UID,
		Name:      plan.Name,
		Target:    v.target(root),
		ReadOnly:  plan.ReadOnly,
		OnFailure: plan.OnFailure,
		Lifespan:  plan.Lifespan,
		Failed:    p.Plan.Failed,
		Owner:     p.Plan.Owner.String(),
		Content:   plan.Content,
	}
	p.Volumes = append(p.Volumes, v)
	return v
}

// specName is what the kubelet calls the volume: by its name in the pod, or by
// the name of the persistent volume, which is its handle here.
func (v *Volume) specName() string {
	if v.Plan.Persistent {
		return v.Plan.ID
	}
	return v.Plan.Name
}

// directory is the spec name as one path element, written like the kubelet does.
func (v *Volume) directory() string { return strings.ReplaceAll(v.specName(), "/", "~") }

// settle notes the outcome and reports whether it is the first one.
func (v *Volume) settle(how Outcome) bool { return v.outcome.CompareAndSwap(0, int32(how)) }

func (v *Volume) settled() bool { return v.outcome.Load() != 0 }

// phase says what the API has of a pod.
type phase int

const (
	running phase = iota
	finished
	forgotten
)

func (p *Pod) phase() phase {
	switch {
	case closed(p.forgotten):
		return forgotten
	case closed(p.finished):
		return finished
	}
	return running
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
