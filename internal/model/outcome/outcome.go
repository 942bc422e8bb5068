// Package outcome says how a pod ended, from what its object in the Kubernetes API says. It is one
// pure rule: sources of such objects are elsewhere.
//
// The phase alone does not tell. Since Kubernetes 1.27 a pod that was stopped and then exits with
// code 0 is Succeeded: after `kubectl delete`, after its Job's deadline, after preemption, and when
// the node runs short of something. None of these has done its work, so [Of] calls only those pods
// Succeeded that nothing had stopped. Two evictions cannot be distinguished from success, because the
// object does not show them: one for the limit of an emptyDir, and one right after a restart of the
// kubelet. Nor can a deletion by force that a kubelet finds out later, when it reaches the API server
// again. That is why success only ever shortens a lifespan, and nothing goes at once.
//
// Nor does the phase say what failed. A pod that was stopped and ends by the signal that stopped it, as
// most programs do that handle none, is Failed with exit code 143. It has not failed: it is Stopped.
package outcome

import (
	"slices"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// Pod is what is needed of a pod to say how it ended.
type Pod struct {
	// UID is what the kubelet calls the pod by.
	UID volume.PodUID
	// Volumes are the names, in the pod's spec, of the volumes that the caller cares about.
	Volumes []string
	// Phase is status.phase. Reason is status.reason, where the kubelet says why it ended the pod itself.
	Phase, Reason string
	// Disrupted: the condition DisruptionTarget is True.
	Disrupted bool
	// Created is metadata.creationTimestamp, by the clock of the API server; Started is
	// status.startTime, by that of the node. Both may be zero.
	Created, Started time.Time
	// Deletion is metadata.deletionTimestamp; zero if the pod was not told to go. Grace is
	// metadata.deletionGracePeriodSeconds, which Deletion includes; nil if it is not set.
	Deletion time.Time
	Grace    *int64
	// Containers are the terminated containers. Running: at least one container has begun and has no end.
	// Waiting: at least one has not begun. FailedBefore: at least one has failed and was started again.
	Containers                     []Container
	Running, Waiting, FailedBefore bool
}

// Container is the end of one container.
type Container struct {
	// Started and Finished go by the clock of the node, in whole seconds.
	Started, Finished time.Time
	// Code is its exit code. OutOfMemory: the kernel killed a process of it.
	Code        int32
	OutOfMemory bool
}

// Ending is how a pod ended.
type Ending struct {
	Pod     volume.PodUID
	Outcome volume.Outcome
	// Volumes are the names of the pod's volumes.
	Volumes []string
	// End is what is kept of it, as package podend encodes it; nil if that is not known.
	End []byte
}

// MostVolumes bounds the volumes of a pod whose outcome is passed on.
const MostVolumes = 256

// The phases of a pod that has ended.
const (
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
)

// ReasonOutOfMemory is the reason of a container's end that OutOfMemory stands for.
const ReasonOutOfMemory = "OOMKilled"

// clockMargin is how far the clocks of node and API server may differ. The node's clock says when a pod
// ended, that of the API server when it was stopped.
const clockMargin = time.Minute

// Of returns how a pod ended. It is OutcomeUnknown for one that has not.
func Of(p Pod) volume.Outcome {
	switch {
	case p.Phase == phaseFailed && endedAsTold(p):
		return volume.Stopped
	case p.Phase == phaseFailed:
		return volume.Failed
	case p.Phase != phaseSucceeded:
		return volume.OutcomeUnknown
	case p.Disrupted, !p.Deletion.IsZero() && !endedBefore(p):
		return volume.Stopped
	}
	return volume.Succeeded
}

// endedBefore reports whether all containers of a pod had certainly ended when it was stopped. It
// says no if the clocks contradict one another.
func endedBefore(p Pod) bool {
	told, ok := toldAt(p)
	if !ok || p.Running || p.Waiting || len(p.Containers) == 0 {
		return false
	}
	if p.Created.IsZero() || p.Started.IsZero() || p.Started.Before(p.Created) {
		return false // the node's clock is late
	}
	for _, c := range p.Containers {
		if c.Started.IsZero() || c.Started.Before(p.Started) || c.Finished.Before(c.Started) {
			return false // the node's clock was set back
		}
		if !c.Finished.Add(clockMargin).Before(told) {
			return false
		}
	}
	return true
}

// endedAsTold reports whether a pod was stopped, and nothing of it failed: each container that did not
// exit with 0 ended by the signal that stopped it, within the grace. One that such a signal ended before has failed:
// a liveness probe had it killed, and its owner deletes what has failed. So it says no if the node's clock is late.
func endedAsTold(p Pod) bool {
	told, ok := toldAt(p)
	if !ok || p.Reason != "" || p.Running || p.FailedBefore {
		return false
	}
	signalled := false
	for _, c := range p.Containers {
		if c.Code == 0 && !c.OutOfMemory {
			continue
		}
		if c.OutOfMemory || !slices.Contains(asksToEnd, c.Code) ||
			c.Finished.Before(told) || c.Finished.After(p.Deletion.Add(clockMargin)) {
			return false
		}
		signalled = true
	}
	return signalled
}

// asksToEnd are the exit codes of what ended by a signal that asks for it: SIGTERM, and those that images
// name in its place, SIGINT and SIGQUIT. SIGKILL is none: what has to be killed did not do as it was told.
var asksToEnd = []int32{128 + 15, 128 + 2, 128 + 3}

// toldAt returns when a pod was stopped. ok is false if it was not, or if that cannot be known.
func toldAt(p Pod) (at time.Time, ok bool) {
	if p.Deletion.IsZero() || p.Grace == nil || *p.Grace < 0 || *p.Grace > int64(maxGrace/time.Second) {
		return time.Time{}, false
	}
	return p.Deletion.Add(-time.Duration(*p.Grace) * time.Second), true
}

// maxGrace is far longer than a pod is given, and short enough to be subtracted from a time.
const maxGrace = 100 * 365 * 24 * time.Hour
