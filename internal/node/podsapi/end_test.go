package podsapi

import (
	"reflect"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/internal/model/podend"
)

// TestDecodeEnd: it says what the gateway says of the same pod.
func TestDecodeEnd(t *testing.T) {
	at := meta.NewTime(time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC))
	pod := &core.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.CreationTimestamp, pod.DeletionTimestamp = "ci", "nightly", types.UID("u"), at, &at
	pod.Annotations = map[string]string{"a": "secret", podend.DefaultContainer: "main"}
	pod.Spec = core.PodSpec{NodeName: "node-1", RestartPolicy: "Never", InitContainers: []core.Container{{Name: "prepare"}},
		Containers: []core.Container{{Name: "main", Image: "busybox", Args: []string{"secret"}, Resources: core.ResourceRequirements{
			Limits: core.ResourceList{"memory": resource.MustParse("64Mi")}, Requests: core.ResourceList{"cpu": resource.MustParse("10m")}}}},
		EphemeralContainers: []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "debug", Image: "tools"}}}}
	pod.Status = core.PodStatus{Phase: "Failed", Reason: "Evicted", Message: "disk", StartTime: &at,
		Conditions: []core.PodCondition{{Type: "Ready", Status: "True", Reason: "no"},
			{Type: core.DisruptionTarget, Status: "True", Reason: "TerminationByKubelet", Message: "pressure"}},
		ContainerStatuses: []core.ContainerStatus{{Name: "main", RestartCount: 2,
			State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 137, Signal: 9, Reason: "OOMKilled", Message: "last",
				StartedAt: at, FinishedAt: at}},
			LastTerminationState: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: -1}}}},
		InitContainerStatuses: []core.ContainerStatus{{Name: "prepare",
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: at}}}},
		EphemeralContainerStatuses: []core.ContainerStatus{{Name: "debug",
			State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "Pull", Message: "no"}}}},
	}
	got, err := decodeEnd(marshal(t, pod))
	if err != nil {
		t.Fatal(err)
	}
	if got, err = podend.Decode(got.Encode()); err != nil {
		t.Fatal(err)
	}
	want := podend.Pod{Namespace: "ci", Name: "nightly", UID: "u", Node: "node-1", RestartPolicy: "Never", Phase: "Failed", Reason: "Evicted",
		Message: "disk", Disruption: &podend.Disruption{Reason: "TerminationByKubelet", Message: "pressure"}, Created: at.Time, Started: at.Time,
		Deleted: at.Time, Default: "main", Containers: []podend.Container{
			{Name: "prepare", Kind: podend.Init, State: podend.State{State: podend.Running, Started: at.Time}},
			{Name: "main", Image: "busybox", Limits: map[string]string{"memory": "64Mi"}, Requests: map[string]string{"cpu": "10m"}, Restarts: 2,
				State: podend.State{State: podend.Terminated, ExitCode: new(int32(137)), Signal: 9, Reason: "OOMKilled", Message: "last",
					Started: at.Time, Finished: at.Time},
				Last: &podend.State{State: podend.Terminated, ExitCode: new(int32(-1))}},
			{Name: "debug", Kind: podend.Ephemeral, Image: "tools", State: podend.State{State: podend.Waiting, Reason: "Pull", Message: "no"}},
		}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want\n%+v", got, want)
	}
}

func FuzzDecodeEnd(f *testing.F) {
	f.Add(marshal(f, &core.Pod{Status: core.PodStatus{ContainerStatuses: []core.ContainerStatus{{Name: "a"}}}}))
	f.Fuzz(func(t *testing.T, message []byte) {
		p, err := decodeEnd(message)
		if err != nil {
			return
		}
		if text := p.Encode(); len(text) > podend.MostBytes {
			t.Errorf("%d bytes", len(text))
		}
	})
}
