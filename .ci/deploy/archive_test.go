package deploy

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
)

// credentials is where the gateway has those of the bucket.
const credentials = "/var/run/katbox-archive"

// containersOf returns the pods of the gateway and of the daemons.
func containersOf(t *testing.T, objects []*unstructured.Unstructured) (gateway, daemon corev1.PodSpec) {
	t.Helper()
	return one[*appsv1.Deployment](t, objects).Spec.Template.Spec, one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
}

// TestNoArchiveByDefault: no flag, no variable, no Secret, and values about it change nothing while it is off.
func TestNoArchiveByDefault(t *testing.T) {
	rendered := map[string][]*unstructured.Unstructured{}
	for _, dir := range append(slices.Clip(overlays), withAll, withPoolsAndGateway) {
		rendered[dir] = kustomize(t, dir)
	}
	const off = "gateway.enabled=true,archive.enabled=false"
	rendered["the chart"] = helm(t, "--set", off)
	rendered["the chart without"] = helm(t, "--set", off+",archive.what=Always,archive.bucket.name=evidence,"+
		"archive.bucket.caConfigMap=ca,archive.holdNodes=true,"+
		"archive.proxy.https=http://proxy:3128,archive.rate=1Mi")
	for name, objects := range rendered {
		for _, o := range objects {
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"--archive", "--hold-nodes", "ARCHIVE_", "HTTPS_PROXY", "katbox-archive"} {
				if strings.Contains(string(text), word) {
					t.Errorf("%s: %s %s has %s", name, o.GetKind(), o.GetName(), word)
				}
			}
		}
	}
	if difference := diff.Diff(rendered["the chart"], rendered["the chart without"]); difference != "" {
		t.Errorf("values about an archive that is off change something:\n%s", difference)
	}
	refused(t, "archive: {enabled: true, bucket: {name: evidence}}", "archive.enabled needs gateway.enabled")
}

// TestOnlyTheGatewayHasCredentials: no daemon has the Secret, whatever is set, and none of it is in a flag or a variable.
func TestOnlyTheGatewayHasCredentials(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"component": kustomize(t, withArchive), "chart": helm(t, "--set", archived),
		"all values": helm(t, "--set", archived+",archive.bucket.credentialsSecret=keys,archive.bucket.caConfigMap=store-ca,archive.what=Always,"+
			"archive.lifespan=90d,archive.rate=20Mi,archive.maxVolume=50Gi,archive.proxy.https=http://proxy.example.com:3128,"+
			"gateway.certificates.mode=certManager"),
	} {
		acceptAll(t, objects)
		gateway, daemon := containersOf(t, objects)
		secrets := func(pod corev1.PodSpec) (names []string) {
			for _, v := range pod.Volumes {
				if v.Secret != nil && !strings.HasSuffix(v.Secret.SecretName, "-tls") {
					names = append(names, v.Secret.SecretName)
				}
			}
			return names
		}
		want := map[bool]string{false: "katbox-archive", true: "keys"}[name == "all values"]
		if got := secrets(gateway); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: the gateway has the Secrets %q", name, got)
		}
		if got := secrets(daemon); len(got) > 0 {
			t.Errorf("%s: the daemon has the Secrets %q", name, got)
		}
		flags, told := flagsOf(gateway.Containers[0]), flagsOf(daemon.Containers[0])
		if flags["--archive-credentials"] != credentials || !slices.ContainsFunc(gateway.Containers[0].VolumeMounts,
			func(m corev1.VolumeMount) bool { return m.MountPath == credentials && m.ReadOnly && m.SubPath == "" }) {
			t.Errorf("%s: the gateway is told %v, and has %+v", name, flags, gateway.Containers[0].VolumeMounts)
		}
		values := map[string]string{}
		for _, e := range gateway.Containers[0].Env {
			values[e.Name] = e.Value
		}
		if values["ARCHIVE_BUCKET"] != "my-bucket" || values["ARCHIVE_ENDPOINT"] != "https://storage.googleapis.com" ||
			values["ARCHIVE_REGION"] != "auto" {
			t.Errorf("%s: the bucket is %v", name, values)
		}
		for _, e := range slices.Concat(gateway.Containers[0].Env, daemon.Containers[0].Env) {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				t.Errorf("%s: %s is from a Secret", name, e.Name)
			}
		}
		if name != "all values" {
			if told["--archive"] != "OnFailure" {
				t.Errorf("%s: the daemon is told %v", name, told)
			}
			continue
		}
		const ca = "/var/run/katbox-archive-ca/ca.crt"
		for flag, want := range map[string]string{
			"--archive": "Always", "--archive-rate": "20Mi", "--archive-max": "50Gi", "--archive-ca": ca,
		} {
			if told[flag] != want {
				t.Errorf("the daemon is told %v", told)
			}
		}
		if flags["--archive-lifespan"] != "90d" || flags["--archive-ca"] != ca {
			t.Errorf("the gateway is told %v", flags)
		}
		for _, pod := range []corev1.PodSpec{gateway, daemon} {
			env := map[string]string{}
			for _, e := range pod.Containers[0].Env {
				env[e.Name] = e.Value
			}
			// The API server is asked without the proxy.
			if env["HTTPS_PROXY"] != "http://proxy.example.com:3128" || env["NO_PROXY"] != "$(KUBERNETES_SERVICE_HOST)" {
				t.Errorf("the environment is %v", env)
			}
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == "store-ca" }) {
				t.Errorf("the CA is not mounted: %+v", pod.Volumes)
			}
		}
	}
}

// TestCredentialsOfARole: without a Secret the gateway has those that AWS gives its pod.
func TestCredentialsOfARole(t *testing.T) {
	objects := helm(t, "--set", archived+",archive.bucket.credentialsSecret=,gateway.serviceAccount.annotations.role=arn")
	acceptAll(t, objects)
	gateway, _ := containersOf(t, objects)
	c := gateway.Containers[0]
	if _, given := flagsOf(c)["--archive-credentials"]; given || len(gateway.Volumes)+len(c.VolumeMounts) > 0 {
		t.Errorf("the gateway is told %v, and has %+v", c.Args, gateway.Volumes)
	}
}

// TestPlainHTTP: a daemon sends to a store without TLS only where the endpoint says so.
func TestPlainHTTP(t *testing.T) {
	for endpoint, want := range map[string]bool{"http://store.katbox.svc:7070": true, "https://store.katbox.svc:7070": false, "": false} {
		const values = "gateway.enabled=true,archive.enabled=true,archive.bucket.name=evidence,archive.bucket.endpoint="
		_, daemon := containersOf(t, helm(t, "--set", values+endpoint))
		if _, got := flagsOf(daemon.Containers[0])["--archive-insecure"]; got != want {
			t.Errorf("%q: --archive-insecure is there: %t", endpoint, got)
		}
	}
}
