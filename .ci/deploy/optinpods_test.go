package deploy

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/optin"
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomPod is one that the API server accepts, of any shape that the rules look at.
func randomPod(r *rand.Rand) *corev1.Pod {
	rarely := func() bool { return r.IntN(12) == 0 }
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ml",
		Labels: map[string]string{}, Annotations: map[string]string{}}}
	if rarely() {
		pod.Labels[optin.Label] = pick(r, optin.Keep, optin.Drop, "")
	}
	if p := pick(r, optin.Presets...); r.IntN(2) == 0 {
		pod.Labels[p.Label] = "x"
	}
	if rarely() {
		pod.Annotations[optin.VolumesAnnotation] = pick(r, "", "work", " v0, v1 ,work", "v0,istio-data,dind-sock", "nothing")
	}
	if rarely() {
		pod.Annotations["katbox.io/lifespan"] = "90m"
		pod.Annotations["katbox.io/retain"] = "OnFailure"
		pod.Annotations["katbox.io/archive"] = "Always"
	}
	if rarely() {
		kind := pick(r, "DaemonSet", "Job", "ReplicaSet")
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "o", UID: "u"}}
	}
	if rarely() {
		pod.Spec.NodeName = pick(r, "", "n1")
	}
	if rarely() {
		pod.Annotations["kubernetes.io/config.mirror"] = "hash"
		pod.Spec.NodeName = "n1" // or it is refused
	}
	if rarely() {
		pod.Labels["eks.amazonaws.com/fargate-profile"] = "f"
	}
	if rarely() {
		pod.Spec.OS = &corev1.PodOS{Name: pick(r, corev1.Windows, corev1.Linux)}
	}
	if rarely() {
		pod.Spec.PriorityClassName = pick(r, "system-node-critical", "batch")
	}
	if rarely() {
		pod.Spec.NodeSelector = pick(r, map[string]string{"kubernetes.io/os": "windows"}, map[string]string{"type": "virtual-kubelet"},
			map[string]string{"kubernetes.io/os": "linux"})
	}
	randomAffinity(r, &pod.Spec)
	names := []string{"work", "istio-data", "workload-socket", "tekton-internal-home", "tekton-internal-workspace", "dind-sock", "repo",
		"scripts", "my-secrets", "katbox-tmp", "katbox-tmp-ray", "spark-local-dir-1", "var-run-argo"}
	for i := range r.IntN(6) {
		name := fmt.Sprintf("v%d", i)
		if at := r.IntN(len(names) * 2); at < len(names) {
			name, names = names[at], append(names[:at:at], names[at+1:]...)
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, randomVolume(r, name))
	}
	for i := range 1 + r.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(r, fmt.Sprintf("c%d", i), pod.Spec.Volumes))
	}
	if r.IntN(3) == 0 {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, randomContainer(r, "init", pod.Spec.Volumes))
	}
	return pod
}

func randomAffinity(r *rand.Rand, spec *corev1.PodSpec) {
	if r.IntN(3) > 0 {
		return
	}
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	os := corev1.NodeSelectorRequirement{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn,
		Values: []string{pick(r, "linux", "windows")}}
	here := corev1.NodeSelectorRequirement{Key: api.Topology, Operator: corev1.NodeSelectorOpExists}
	spec.Affinity = &corev1.Affinity{}
	if r.IntN(4) == 0 {
		return
	}
	spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	if r.IntN(4) == 0 {
		return
	}
	selector := &corev1.NodeSelector{}
	for range 1 + r.IntN(3) {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, pick(r, corev1.NodeSelectorTerm{},
			corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{zone}},
			corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{zone, os}},
			corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{here, zone}},
			corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n"}}}}))
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = selector
}

func randomVolume(r *rand.Rand, name string) corev1.Volume {
	v := corev1.Volume{Name: name}
	switch r.IntN(8) {
	case 0:
		v.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}
	case 1:
		v.CSI = &corev1.CSIVolumeSource{Driver: api.DriverName}
	default:
		v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: pick(r, "", "", "", "", corev1.StorageMediumMemory, corev1.StorageMediumHugePages)}
		if r.IntN(3) == 0 {
			limit := resource.MustParse(pick(r, "1Gi", "1500m", "1", "0", "64Ki", "2Ei", "1.5Gi", "10G", "1e3", "3e9"))
			v.EmptyDir.SizeLimit = &limit
		}
		if r.IntN(6) == 0 {
			mode := pick(r, int32(0), 0o777, 0o1777, 0o7, 0o750)
			v.EmptyDir.Mode = &mode
		}
	}
	return v
}

func randomContainer(r *rand.Rand, name string, volumes []corev1.Volume) corev1.Container {
	c := corev1.Container{Name: name, Image: "busybox"}
	for i, v := range volumes {
		switch r.IntN(3) {
		case 0:
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: fmt.Sprintf("/mnt/%d", i)})
		case 1:
			path := pick(r, "/tmp", "/tmp/", "/tmp/ray", "/tmp/x", "/", "/tmpx", "data", "/work")
			if r.IntN(3) == 0 && len(c.VolumeMounts) == 0 {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: path, ReadOnly: r.IntN(2) == 0})
			}
		}
		if v.EmptyDir != nil && v.EmptyDir.Medium == "" && r.IntN(12) == 0 {
			c.Env = append(c.Env, corev1.EnvVar{Name: "KEY", ValueFrom: &corev1.EnvVarSource{
				FileKeyRef: &corev1.FileKeySelector{VolumeName: v.Name, Path: "env", Key: "KEY"}}})
			break
		}
	}
	return c
}
