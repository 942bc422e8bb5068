package outcomes

import (
	"time"
	"unique"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
)

// mostDriver is the longest name of a CSI driver, in bytes.
const mostDriver = 63

// ofPod returns how a pod on a node has ended. It returns false for one that has not, and for one
// without inline CSI volumes. Its End is left out. What no node takes as the name of a volume is left out: it would refuse the others
// with it.
func ofPod(pod *core.Pod) (o api.PodOutcome, ok bool) {
	for _, v := range pod.Spec.Volumes {
		if v.CSI != nil && len(o.Volumes) < outcome.MostVolumes && v.Name != "" && volume.ObjectName(v.Name) == v.Name &&
			len(v.CSI.Driver) <= mostDriver {
			o.Volumes = append(o.Volumes, v.Name)
			o.Drivers = append(o.Drivers, unique.Make(v.CSI.Driver).Value()) // there are few of them
		}
	}
	how := outcome.Of(facts(pod))
	if pod.Spec.NodeName == "" || len(o.Volumes) == 0 || how == volume.OutcomeUnknown {
		return api.PodOutcome{}, false
	}
	o.PodUID, o.Outcome = string(pod.UID), how.String()
	// The kubelet calls a static pod by another UID than its mirror has. A node may write that as it
	// likes, but only into mirrors of its own pods, and nothing here is reported to another node.
	if mirrored, ok := pod.Annotations[core.MirrorPodAnnotationKey]; ok {
		o.PodUID = mirrored
	}
	if _, err := volume.ParsePodUID("podUID", o.PodUID); err != nil {
		return api.PodOutcome{}, false // the node would refuse those of other pods with it
	}
	return o, true
}

// facts are what the rule needs.
func facts(pod *core.Pod) outcome.Pod {
	p := outcome.Pod{
		Phase: string(pod.Status.Phase), Reason: pod.Status.Reason,
		Created: pod.CreationTimestamp.Time, Grace: pod.DeletionGracePeriodSeconds,
		Started: at(pod.Status.StartTime), Deletion: at(pod.DeletionTimestamp),
	}
	for _, c := range pod.Status.Conditions {
		p.Disrupted = p.Disrupted || c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue
	}
	for _, statuses := range [][]core.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for _, s := range statuses {
			last := s.LastTerminationState.Terminated
			p.FailedBefore = p.FailedBefore || last != nil && last.ExitCode != 0
			switch ended := s.State.Terminated; {
			case ended != nil:
				p.Containers = append(p.Containers, outcome.Container{
					Started: ended.StartedAt.Time, Finished: ended.FinishedAt.Time,
					Code: ended.ExitCode, OutOfMemory: ended.Reason == outcome.ReasonOutOfMemory,
				})
			case s.State.Running != nil || last != nil:
				p.Running = true
			default:
				p.Waiting = true
			}
		}
	}
	return p
}

func at(t *meta.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
