package outcomes

import (
	"encoding/json"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/model/podend"
)

// TestEndLeavesOutSecrets: of a pod that has something everywhere, what is kept has nothing that may be a secret.
func TestEndLeavesOutSecrets(t *testing.T) {
	pod := &core.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ci", "nightly", "0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2e"
	pod.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "secret", podend.DefaultContainer: "secret"}
	pod.Labels = map[string]string{"secret": "secret"}
	secret := core.Container{Name: "main", Image: "busybox", Command: []string{"secret"}, Args: []string{"secret"},
		Env:           []core.EnvVar{{Name: "secret", Value: "secret"}},
		LivenessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{Exec: &core.ExecAction{Command: []string{"secret"}}}},
		Resources:     core.ResourceRequirements{Limits: core.ResourceList{"memory": resource.MustParse("64Mi")}},
	}
	init, debug := secret, core.EphemeralContainer{}
	init.Name = "prepare"
	debug.Name, debug.Args = "debug", []string{"secret"}
	pod.Spec = core.PodSpec{NodeName: "node-1", RestartPolicy: "Never",
		InitContainers: []core.Container{init}, Containers: []core.Container{secret},
		EphemeralContainers: []core.EphemeralContainer{debug}, NodeSelector: map[string]string{"secret": "secret"},
		Volumes: []core.Volume{{Name: "v", VolumeSource: core.VolumeSource{CSI: &core.CSIVolumeSource{Driver: "katbox.csi.paypal.com",
			VolumeAttributes: map[string]string{"secret": "secret"}}}}}}
	pod.Status = core.PodStatus{Phase: "Failed", Reason: "Evicted", Message: "disk",
		Conditions: []core.PodCondition{{Type: "Ready", Status: "False", Message: "no"},
			{Type: core.DisruptionTarget, Status: "True", Reason: "TerminationByKubelet", Message: "pressure"}},
		ContainerStatuses: []core.ContainerStatus{{Name: "main", RestartCount: 2,
			State: core.ContainerState{Terminated: &core.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", Message: "last word"}},
			LastTerminationState: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 1}}}},
		InitContainerStatuses: []core.ContainerStatus{{Name: "unknown"}},
	}
	encoded := encodeEnd(pod, string(pod.UID))
	if strings.Contains(string(encoded), "secret") {
		t.Fatalf("%s", encoded)
	}
	pod.Annotations[podend.DefaultContainer] = "main"
	end, err := podend.Decode(encodeEnd(pod, string(pod.UID)))
	text, _ := json.Marshal(end)
	const want = `{"namespace":"ci","name":"nightly","uid":"0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2e","node":"node-1","restartPolicy":"Never",` +
		`"phase":"Failed","reason":"Evicted","message":"disk",` +
		`"disruption":{"reason":"TerminationByKubelet","message":"pressure"},"containers":[` +
		`{"name":"prepare","kind":"init","image":"busybox","limits":{"memory":"64Mi"}},` +
		`{"name":"main","image":"busybox","limits":{"memory":"64Mi"},"restarts":2,"state":"terminated","exitCode":137,"reason":"OOMKilled",` +
		`"message":"last word","last":{"state":"terminated","exitCode":1}},{"name":"debug","kind":"ephemeral"}],` +
		`"defaultContainer":"main"}`
	if err != nil || string(text) != want {
		t.Errorf("%v, %s, want\n%s", err, text, want)
	}
}
