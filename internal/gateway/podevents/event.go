package podevents

import (
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// reason and component are the event's: what has happened, and who says so.
	reason, component = "FilesKept", "katbox-gateway"
	// fresh is how long ago a pod may have ended. Clocks differ, so it may also seem to end later.
	fresh = 10 * time.Minute
	// mostMessage is how long a message may be, in bytes, as the API server counts for newer kinds of events.
	mostMessage = 1024
)

// eventOf returns the event about a pod; nil if there is to be none.
func eventOf(pod *core.Pod, deleted bool, driver string, now time.Time) *core.Event {
	if pod.Status.Phase != core.PodFailed || pod.Spec.NodeName == "" {
		return nil
	}
	volumes := kept(pod, driver)
	if len(volumes) == 0 || now.Sub(ended(pod)).Abs() > fresh {
		return nil
	}
	about, ok := aboutWhom(pod, deleted)
	if !ok {
		return nil
	}
	at := meta.NewTime(now)
	return &core.Event{
		ObjectMeta:     meta.ObjectMeta{Namespace: pod.Namespace, Name: "katbox-" + string(pod.UID)},
		InvolvedObject: about,
		Type:           core.EventTypeNormal, Reason: reason, Message: message(pod.Namespace, pod.Name, volumes),
		Source: core.EventSource{Component: component}, ReportingController: component,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}

// kept returns the names of the volumes whose files stay when the pod has failed, as far as its spec
// says.
func kept(pod *core.Pod, driver string) (names []string) {
	for _, v := range pod.Spec.Volumes {
		if v.CSI == nil || v.CSI.Driver != driver {
			continue
		}
		// What is attached is another pod's, and what is never retained leaves nothing.
		_, attached := v.CSI.VolumeAttributes[api.KeyAttach]
		if !attached && v.CSI.VolumeAttributes[api.KeyRetain] != volume.RetainNever.String() {
			names = append(names, v.Name)
		}
	}
	return names
}

// ended returns when the pod has ended: the last that its status says of it. A pod that was evicted,
// or whose node is lost, may have no container with an end, and a condition of when.
func ended(pod *core.Pod) time.Time {
	last := pod.CreationTimestamp.Time
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, statuses := range [][]core.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if s.State.Terminated != nil {
				later(s.State.Terminated.FinishedAt.Time)
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		later(c.LastTransitionTime.Time)
	}
	return last
}

// aboutWhom returns the object that the event is put on: the pod, or its Job if the pod goes. It
// returns false if there is no object. The user who created the pod wrote who its controller is, in a text of any length:
// what cannot be the name of a Job is none.
func aboutWhom(pod *core.Pod, deleted bool) (core.ObjectReference, bool) {
	if !deleted && pod.DeletionTimestamp == nil {
		return core.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}, true
	}
	owner := meta.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != "batch/v1" ||
		owner.Name == "" || volume.ObjectName(owner.Name) != owner.Name || volume.OwnerText(string(owner.UID)) == "" {
		return core.ObjectReference{}, false
	}
	return core.ObjectReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID,
	}, true
}

// message says what is kept, and how to see it.
func message(namespace, pod string, volumes []string) string {
	what := "volume " + volumes[0]
	if len(volumes) > 1 {
		what = "volumes " + strings.Join(volumes, ", ")
	}
	target := "-n " + namespace + " pod/" + pod
	say := func(what string) string {
		return fmt.Sprintf("The files of %s are kept for a while after the pod. "+
			"To see them: kubectl katbox ls %s; until when: kubectl katbox list %s", what, target, target)
	}
	if text := say(what); len(text) <= mostMessage {
		return text
	}
	return say(fmt.Sprint(len(volumes), " volumes"))
}
