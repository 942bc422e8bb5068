// Package outcome says how a pod ended, from what its object in the Kubernetes API says. It is one
// pure rule: sources of such objects are elsewhere.
//
// The phase alone does not tell. Since Kubernetes 1.27 a pod that was told to go and then exits with
// code 0 is Succeeded: after `kubectl delete`, after its Job's deadline, after preemption, and when
// the node runs short of something. None of these has done its work, so [Of] calls only those pods
// Succeeded that nothing had told to go. Two evictions cannot be told from success, because the
// object does not show them: one for the limit of an emptyDir, and one right after a restart of the
// kubelet. Nor can a deletion by force that a kubelet finds out later, when it reaches the API server
// again. That is why success only ever shortens a lifespan, and nothing goes at once.
package outcome

import (
	"time"

	"github.com/katbox/katbox/internal/volume"
)

// Pod is what is needed of a pod to say how it ended.
type Pod struct {
	// UID is what the kubelet calls the pod by.
	UID volume.PodUID
	// Volumes are the names, in the pod's spec, of the volumes that the caller cares about.
	Volumes []string
	// Phase is status.phase.
	Phase string
	// Disrupted: the condition DisruptionTarget is True.
	Disrupted bool
	// Created is metadata.creationTimestamp, by the clock of the API server; Started is
	// status.startTime, by that of the node. Both may be zero.
	Created, Started time.Time
	// Deletion is metadata.deletionTimestamp; zero if the pod was not told to go. Grace is
	// metadata.deletionGracePeriodSeconds, which Deletion includes; nil if it is not set.
	Deletion time.Time
	Grace    *int64
	// Containers are the terminated containers. Running: at least one container has no end.
	Containers []Container
	Running    bool
}

// Container is the end of one container, by the clock of the node in whole seconds.
type Container struct{ Started, Finished time.Time }

// Ending is how a pod ended.
type Ending struct {
	Pod     volume.PodUID
	Outcome volume.Outcome
	// Volumes are the names of the pod's volumes.
	Volumes []string
}

// MostVolumes bounds the volumes of a pod whose outcome is passed on.
const MostVolumes = 256

// The phases of a pod that has ended.
const (
	phaseSucceeded = "Succeeded"
	phaseFailed    = "Failed"
)

// clockMargin is how long before the order to go a pod has to have ended. The node's clock says when
// it ended, that of the API server when it was told to go, and the two may differ.
const clockMargin = time.Minute

// Of returns how a pod ended. It is OutcomeUnknown for one that has not.
func Of(p Pod) volume.Outcome {
	switch {
	case p.Phase == phaseFailed:
		return volume.Failed
	case p.Phase != phaseSucceeded:
		return volume.OutcomeUnknown
	case p.Disrupted, !p.Deletion.IsZero() && !endedBefore(p):
		return volume.Stopped
	}
	return volume.Succeeded
}

// endedBefore reports whether all containers of a pod had certainly ended when it was told to go. It
// says no if the clocks contradict one another.
func endedBefore(p Pod) bool {
	if p.Grace == nil || *p.Grace < 0 || *p.Grace > int64(maxGrace/time.Second) || p.Running || len(p.Containers) == 0 {
		return false
	}
	if p.Created.IsZero() || p.Started.IsZero() || p.Started.Before(p.Created) {
		return false // the node's clock is late
	}
	told := p.Deletion.Add(-time.Duration(*p.Grace) * time.Second)
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

// maxGrace is far longer than a pod is given, and short enough to be subtracted from a time.
const maxGrace = 100 * 365 * 24 * time.Hour
