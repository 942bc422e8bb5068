package podsapi

import (
	"reflect"
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
)

const driver = "katbox.csi.paypal.com"

func at(second int64) meta.Time { return meta.Unix(1_800_000_000+second, 0) }

func inline(name, driver string) core.Volume {
	return core.Volume{Name: name, VolumeSource: core.VolumeSource{CSI: &core.CSIVolumeSource{Driver: driver}}}
}

// pod has all that is decoded, and much that is not.
func pod() *core.Pod {
	deleted, grace, started := at(100), int64(30), at(1)
	terminated := func(from, to int64) core.ContainerState {
		return core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 3, StartedAt: at(from), FinishedAt: at(to)}}
	}
	outOfMemory := terminated(2, 3)
	outOfMemory.Terminated.Reason = "OOMKilled"
	return &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: "job-1", Namespace: "ci", UID: "0c8e8a4e-0f5c-4a3b-9c0e-4a1d3a7c7f10", CreationTimestamp: at(0),
			DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &grace, Labels: map[string]string{"a": "b"},
			ManagedFields: []meta.ManagedFieldsEntry{{Manager: "m", Time: &deleted}},
		},
		Spec: core.PodSpec{
			NodeName: "n1", Containers: []core.Container{{Name: "c", Image: "i"}},
			Volumes: []core.Volume{
				inline("scratch", driver), {Name: "empty", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
				inline("other", "x"), inline("more", driver),
			},
		},
		Status: core.PodStatus{
			Phase: core.PodSucceeded, Reason: "Evicted", StartTime: &started,
			Conditions: []core.PodCondition{
				{Type: core.PodReady, Status: core.ConditionTrue}, {Type: core.DisruptionTarget, Status: core.ConditionTrue, LastTransitionTime: at(3)},
			},
			InitContainerStatuses:      []core.ContainerStatus{{Name: "i", State: outOfMemory}},
			ContainerStatuses:          []core.ContainerStatus{{Name: "c", State: terminated(4, 5), LastTerminationState: terminated(1, 9)}},
			EphemeralContainerStatuses: []core.ContainerStatus{{Name: "e", State: core.ContainerState{Running: &core.ContainerStateRunning{}}}},
		},
	}
}

func marshal(t testing.TB, p *core.Pod) []byte {
	t.Helper()
	b, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDecodePod: what is decoded by hand is what Kubernetes' own types encode.
func TestDecodePod(t *testing.T) {
	grace := int64(30)
	want := outcome.Pod{
		UID: "0c8e8a4e-0f5c-4a3b-9c0e-4a1d3a7c7f10", Volumes: []string{"scratch", "more"}, Phase: "Succeeded", Reason: "Evicted", Disrupted: true,
		Created: at(0).Time, Started: at(1).Time, Deletion: at(100).Time, Grace: &grace,
		Running: true, FailedBefore: true, Containers: []outcome.Container{
			{Started: at(2).Time, Finished: at(3).Time, Code: 3, OutOfMemory: true}, {Started: at(4).Time, Finished: at(5).Time, Code: 3},
		},
	}
	got, err := decodePod(marshal(t, pod()), driver)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got.Containers, func(a, b outcome.Container) int { return a.Started.Compare(b.Started) })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got, err := decodePod(nil, driver); err != nil || !reflect.DeepEqual(got, outcome.Pod{}) {
		t.Errorf("an empty pod is %+v, %v", got, err)
	}
}

// TestDecodeTimes: a time that is not set is zero, not the beginning of 1970.
func TestDecodeTimes(t *testing.T) {
	p := pod()
	p.CreationTimestamp, p.DeletionTimestamp, p.Status.StartTime = meta.Time{}, nil, nil
	p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = meta.Time{}
	got, err := decodePod(marshal(t, p), driver)
	if err != nil || !got.Created.IsZero() || !got.Deletion.IsZero() || !got.Started.IsZero() {
		t.Errorf("got %+v, %v", got, err)
	}
	zero := 0
	for _, c := range got.Containers {
		if c.Finished.IsZero() {
			zero++
		}
	}
	if zero != 1 {
		t.Errorf("%d containers have no end, want 1: %+v", zero, got.Containers)
	}
}

// TestDecodeStates: what a container's state says about how the pod ended.
func TestDecodeStates(t *testing.T) {
	ended := func(code int32) core.ContainerState {
		return core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, FinishedAt: at(5)}}
	}
	runs := core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: at(2)}}
	waits := core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "PodInitializing"}}
	end := func(code int32) []outcome.Container { return []outcome.Container{{Finished: at(5).Time, Code: code}} }
	for name, tt := range map[string]struct {
		now, last core.ContainerState
		want      outcome.Pod
	}{
		"ended by a signal":           {ended(143), core.ContainerState{}, outcome.Pod{Containers: end(143)}},
		"a code that no process has":  {ended(-1), core.ContainerState{}, outcome.Pod{Containers: end(-1)}},
		"ended after it had failed":   {ended(0), ended(1), outcome.Pod{Containers: end(0), FailedBefore: true}},
		"ended after it had ended":    {ended(0), ended(0), outcome.Pod{Containers: end(0)}},
		"runs":                        {runs, core.ContainerState{}, outcome.Pod{Running: true}},
		"waits for the first time":    {waits, core.ContainerState{}, outcome.Pod{Waiting: true}},
		"waits after it had failed":   {waits, ended(1), outcome.Pod{Running: true, FailedBefore: true}},
		"nothing is known of it":      {core.ContainerState{}, core.ContainerState{}, outcome.Pod{Waiting: true}},
		"runs again after a good end": {runs, ended(0), outcome.Pod{Running: true}},
	} {
		p := &core.Pod{ObjectMeta: meta.ObjectMeta{UID: "u"}}
		tt.want.UID = "u"
		p.Status.ContainerStatuses = []core.ContainerStatus{{State: tt.now, LastTerminationState: tt.last}}
		if got, err := decodePod(marshal(t, p), driver); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, tt.want)
		}
	}
}

// TestDecodeBounds: of a pod with many volumes and containers some are left out, and then it counts as
// one that may still run.
func TestDecodeBounds(t *testing.T) {
	p := pod()
	p.Status.EphemeralContainerStatuses = nil
	for range outcome.MostVolumes {
		p.Spec.Volumes = append(p.Spec.Volumes, inline("v", driver))
	}
	for range mostContainers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, p.Status.ContainerStatuses[0])
	}
	got, err := decodePod(marshal(t, p), driver)
	if err != nil || len(got.Volumes) != outcome.MostVolumes || len(got.Containers) != mostContainers || !got.Running {
		t.Errorf("%d volumes, %d containers, running %v, %v", len(got.Volumes), len(got.Containers), got.Running, err)
	}
}

// TestDecodeRefuses: a UID that cannot be a directory's name, and what is cut off.
func TestDecodeRefuses(t *testing.T) {
	p := pod()
	p.UID = "../x"
	if got, err := decodePod(marshal(t, p), driver); err == nil {
		t.Errorf("got %+v", got)
	}
	whole := marshal(t, pod())
	refused := 0
	for n := range whole {
		if _, err := decodePod(whole[:n], driver); err != nil {
			refused++
		}
	}
	if refused < len(whole)-4 {
		t.Errorf("of %d pods that are cut off only %d are refused", len(whole), refused)
	}
}

// FuzzDecode: nothing that is decoded makes the daemon fail or takes much memory.
func FuzzDecode(f *testing.F) {
	f.Add(marshal(f, pod()))
	f.Add(marshal(f, &core.Pod{}))
	f.Fuzz(func(t *testing.T, message []byte) {
		if e, err := decodeEvent(message); err == nil {
			_, _ = decodePod(e.pod, driver)
		}
		p, err := decodePod(message, driver)
		var really core.Pod
		if err != nil || really.Unmarshal(message) != nil {
			return
		}
		if string(really.UID) != string(p.UID) || string(really.Status.Phase) != p.Phase {
			t.Errorf("got %+v, Kubernetes' types say UID %q, phase %q", p, really.UID, really.Status.Phase)
		}
		if outcome.Of(p) == volume.Succeeded && really.Status.Phase != core.PodSucceeded {
			t.Errorf("phase %q is a success", really.Status.Phase)
		}
	})
}
