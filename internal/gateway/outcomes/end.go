package outcomes

import (
	core "k8s.io/api/core/v1"

	"github.com/katbox/katbox/internal/model/podend"
)

// encodeEnd returns what a node keeps of a pod that has ended, under the UID that the kubelet calls it by.
func encodeEnd(pod *core.Pod, uid string) []byte {
	end := endOf(pod)
	end.UID = uid
	return end.Encode()
}

// endOf returns what is kept of a pod that has ended.
func endOf(pod *core.Pod) podend.Pod {
	p := podend.Pod{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		RestartPolicy: string(pod.Spec.RestartPolicy), Phase: string(pod.Status.Phase), Reason: pod.Status.Reason,
		Message: pod.Status.Message, Created: pod.CreationTimestamp.Time,
		Started: at(pod.Status.StartTime), Deleted: at(pod.DeletionTimestamp), Default: pod.Annotations[podend.DefaultContainer],
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue {
			p.Disruption = &podend.Disruption{Reason: c.Reason, Message: c.Message}
		}
	}
	known := map[string]int{}
	add := func(name, kind, image string, resources core.ResourceRequirements) {
		known[name] = len(p.Containers)
		p.Containers = append(p.Containers, podend.Container{Name: name, Kind: kind, Image: image,
			Requests: amounts(resources.Requests), Limits: amounts(resources.Limits)})
	}
	for _, c := range pod.Spec.InitContainers {
		add(c.Name, podend.Init, c.Image, c.Resources)
	}
	for _, c := range pod.Spec.Containers {
		add(c.Name, "", c.Image, c.Resources)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add(c.Name, podend.Ephemeral, c.Image, c.Resources)
	}
	for _, statuses := range [][]core.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		for _, s := range statuses {
			i, ok := known[s.Name]
			if !ok {
				continue // the API server takes none
			}
			c := &p.Containers[i]
			c.Restarts, c.State = s.RestartCount, stateOf(s.State)
			if last := stateOf(s.LastTerminationState); last != (podend.State{}) {
				c.Last = &last
			}
		}
	}
	return p
}

func amounts(all core.ResourceList) map[string]string {
	var texts map[string]string
	for name, amount := range all {
		if texts == nil {
			texts = map[string]string{}
		}
		texts[string(name)] = amount.String()
	}
	return texts
}

func stateOf(s core.ContainerState) podend.State {
	switch {
	case s.Terminated != nil:
		code := s.Terminated.ExitCode
		return podend.State{State: podend.Terminated, ExitCode: &code, Signal: s.Terminated.Signal, Reason: s.Terminated.Reason,
			Message: s.Terminated.Message, Started: s.Terminated.StartedAt.Time, Finished: s.Terminated.FinishedAt.Time}
	case s.Running != nil:
		return podend.State{State: podend.Running, Started: s.Running.StartedAt.Time}
	case s.Waiting != nil:
		return podend.State{State: podend.Waiting, Reason: s.Waiting.Reason, Message: s.Waiting.Message}
	}
	return podend.State{}
}
