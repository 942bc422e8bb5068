package deploy

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// daemonsOfPools are the ways to install pools, with the objects of each.
func daemonsOfPools(t *testing.T) map[string][]*unstructured.Unstructured {
	all := controllers(t)
	all["components"] = append(kustomize(t, definitions), kustomize(t, withPoolsAndGateway)...)
	all["chart, otherwise"] = helm(t, "--namespace", "batch", "--set",
		"pools.enabled=true,gateway.enabled=true,kubeletDir=/data/kubelet,fullnameOverride=scratch,pools.node.storageNetwork=10.9.0.0/16,"+
			"pools.node.maxVolumes=100,pools.node.httpPort=19000,httpPort=8000")
	return all
}

// TestNothingOfPoolsInOtherDaemons: a daemon that only has volumes of its own node's disk gains nothing by
// the pools: no token, no network, no path of the host.
func TestNothingOfPoolsInOtherDaemons(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"base": kustomize(t, "base"), "gateway": kustomize(t, "overlays/with-gateway"), "chart": helm(t, "--set", "gateway.enabled=true"),
	} {
		spec := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
		if spec.HostNetwork || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: the daemon has the host's network %t, a token %t", name, spec.HostNetwork, *spec.AutomountServiceAccountToken)
		}
		for flag := range flagsOf(spec.Containers[0]) {
			if strings.HasPrefix(flag, "--array-") || strings.HasPrefix(flag, "--host-root") || strings.HasPrefix(flag, "--chap-") {
				t.Errorf("%s: the daemon has %s", name, flag)
			}
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil && (v.HostPath.Path == "/" || v.HostPath.Path == "/dev") {
				t.Errorf("%s: the daemon has %s of the host", name, v.HostPath.Path)
			}
			for _, source := range projected(v) {
				if source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == "" {
					t.Errorf("%s: the daemon has a token of the API server", name)
				}
			}
		}
		if rights := rightsOf(t, objects, spec.ServiceAccountName); len(rights) > 0 {
			t.Errorf("%s: the daemon may %v", name, rights)
		}
	}
}

// TestDaemonOfPools has what volumes of arrays take: paths that agree, with the propagation that each needs.
func TestDaemonOfPools(t *testing.T) {
	for name, objects := range daemonsOfPools(t) {
		spec := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
		if !spec.HostNetwork || spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet || len(spec.Containers) != 1 {
			t.Errorf("%s: the host's network %t, DNS policy %s, %d containers", name, spec.HostNetwork, spec.DNSPolicy, len(spec.Containers))
		}
		daemon := spec.Containers[0]
		flags := flagsOf(daemon)
		volumes := map[string]corev1.Volume{}
		for _, v := range spec.Volumes {
			volumes[v.Name] = v
		}
		type mount struct {
			host  string
			reach corev1.MountPropagationMode
		}
		mounts := map[string]mount{}
		for _, m := range daemon.VolumeMounts {
			var reach corev1.MountPropagationMode
			if m.MountPropagation != nil {
				reach = *m.MountPropagation
			}
			if h := volumes[m.Name].HostPath; h != nil {
				mounts[m.MountPath] = mount{h.Path, reach}
			}
		}
		kubelet := flags["--kubelet-dir"]
		staging := kubelet + "/plugins/kubernetes.io/csi"
		for at, want := range map[string]mount{
			"/array": {kubelet + "/plugins/array.csi.katbox.io", ""},
			staging:  {staging, corev1.MountPropagationBidirectional},
			"/dev":   {"/dev", corev1.MountPropagationHostToContainer},
			"/host":  {"/", corev1.MountPropagationHostToContainer},
		} {
			if mounts[at] != want {
				t.Errorf("%s: at %s is %+v, want %+v", name, at, mounts[at], want)
			}
		}
		if flags["--array-endpoint"] != "unix:///array/csi.sock" || flags["--host-root"] != "/host" ||
			flags["--array-kubelet-registration-path"] != mounts["/array"].host+"/csi.sock" ||
			mounts[flags["--registration-dir"]].host != kubelet+"/plugins_registry" {
			t.Errorf("%s: the flags are %v", name, flags)
		}
		if flags["--node-addresses"] != "$(HOST_IPS)" || !slices.ContainsFunc(daemon.Env, func(e corev1.EnvVar) bool {
			return e.Name == "HOST_IPS" && e.ValueFrom.FieldRef.FieldPath == "status.hostIPs"
		}) {
			t.Errorf("%s: the node's addresses are %q, of %+v", name, flags["--node-addresses"], daemon.Env)
		}
		// The host's port has to be one that others leave alone; the probes find it by its name.
		if port := strings.TrimPrefix(flags["--http-endpoint"], ":"); len(daemon.Ports) != 1 || daemon.Ports[0].Name != "metrics" ||
			port == "8080" ||
			port != map[bool]string{true: "19000", false: "9810"}[name == "chart, otherwise"] ||
			strconv.Itoa(int(daemon.Ports[0].ContainerPort)) != port {
			t.Errorf("%s: it listens at %s, and has the ports %+v", name, flags["--http-endpoint"], daemon.Ports)
		}
		if daemon.TerminationMessagePath == corev1.TerminationMessagePathDefault {
			t.Errorf("%s: it leaves %s on the host", name, daemon.TerminationMessagePath)
		}
		given := map[string]bool{"components": true, "chart, otherwise": true}[name]
		if got := flags["--storage-network"]; given && got != "10.9.0.0/16" || !given && got != "" {
			t.Errorf("%s: the storage network is %q", name, got)
		}
	}
	if _, err := template("--set", "pools.enabled=true,sidecars.enabled=true"); err == nil || !strings.Contains(err.Error(),
		"registers the driver") {
		t.Errorf("pools with the classic sidecars: %v", err)
	}
	if _, err := template("--kube-version", "1.29.9", "--set", "pools.enabled=true"); err == nil || !strings.Contains(err.Error(),
		"Kubernetes 1.30") {
		t.Errorf("pools with Kubernetes 1.29: %v", err)
	}
	for _, bad := range []string{"10.9.0.0", "10.9.0.0/16x", "storage"} {
		if _, err := template("--set", "pools.enabled=true,pools.node.storageNetwork="+bad); err == nil {
			t.Errorf("the storage network %q is accepted", bad)
		}
	}
}

// TestTheTokenIsTheDaemonsAlone: it is for the API server, short-lived, and mounted nowhere else.
func TestTheTokenIsTheDaemonsAlone(t *testing.T) {
	for name, objects := range daemonsOfPools(t) {
		spec := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
		if *spec.AutomountServiceAccountToken {
			t.Errorf("%s: each container has a token", name)
		}
		i := slices.IndexFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "api" && m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount" && m.ReadOnly
		})
		j := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "api" })
		if i < 0 || j < 0 {
			t.Fatalf("%s: no token is mounted", name)
		}
		files := map[string]bool{}
		for _, source := range projected(spec.Volumes[j]) {
			if token := source.ServiceAccountToken; token != nil {
				files[token.Path] = token.Audience == "" && *token.ExpirationSeconds == 3600
			}
			if ca := source.ConfigMap; ca != nil {
				files[ca.Items[0].Path] = ca.Name == "kube-root-ca.crt" && ca.Items[0].Key == "ca.crt" && ca.Optional == nil
			}
		}
		if len(files) != 2 || !files["token"] || !files["ca.crt"] {
			t.Errorf("%s: it has %+v", name, spec.Volumes[j].Projected)
		}
	}
}

// TestDaemonMayDoNoMore than this, and with the gateway too.
func TestDaemonMayDoNoMore(t *testing.T) {
	want := []string{
		": namespaces/kube-system get",
		": pools.katbox.io poolattachments get",
		": pools.katbox.io poolattachments/status patch",
		": pools.katbox.io poolnodes get create patch",
		"CHAP: secrets get",
	}
	for name, objects := range daemonsOfPools(t) {
		spec := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
		logins := flagsOf(spec.Containers[0])["--chap-namespace"]
		var got []string
		for _, right := range rightsOf(t, objects, spec.ServiceAccountName) {
			if !strings.Contains(right, "securitycontextconstraints/privileged use") {
				got = append(got, strings.Replace(right, logins+":", "CHAP:", 1))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the daemon may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if controller := flagsOf(one[*appsv1.Deployment](t, deployments(t, objects,
			"controller")).Spec.Template.Spec.Containers[0]); logins == "" ||
			controller["--chap-namespace"] != logins {
			t.Errorf("%s: logins are written to %q, and read from %q", name, controller["--chap-namespace"], logins)
		}
	}
}

// deployments returns the Deployments whose name ends so.
func deployments(t *testing.T, objects []*unstructured.Unstructured, suffix string) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "Deployment" || !strings.HasSuffix(o.GetName(), suffix)
	})
}

// TestGatewayAdmitsDaemonsOfPools: they have the addresses of the nodes, which no selector knows.
func TestGatewayAdmitsDaemonsOfPools(t *testing.T) {
	for _, name := range []string{"components", "chart, otherwise"} {
		open := false
		for _, p := range all[*networkingv1.NetworkPolicy](t, daemonsOfPools(t)[name]) {
			for _, rule := range p.Spec.Ingress {
				open = open || rule.Ports[0].Port.StrVal == "nodes" && len(rule.From) == 0
			}
		}
		if !open {
			t.Errorf("%s: no daemon reaches the gateway", name)
		}
	}
}
