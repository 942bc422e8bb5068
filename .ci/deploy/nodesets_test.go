package deploy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// nodeSets are values with three sets. The selectors of the second and third have two labels each.
const nodeSets = `
nodeSelector: {kubernetes.io/os: linux, tier: batch}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
        - matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]
lifespan: 2d
keepNoexec: true
tolerations: [{operator: Exists}]
nodeSets:
  - name: nvme
    nodeSelector: {disk: nvme}
    workdir: {hostPath: /mnt/nvme/katbox}
    lifespan: 7d
    headroom: 0.2
    keepNoexec: false
  - name: zone-a
    nodeSelector: {disk: hdd, zone: a}
    tolerations: []
    resources: {}
  - name: other
    nodeSelector: {disk: hdd, zone: b, tier: web}
    affinity: {}
    kubeletDir: /data/kubelet
    podLabels: {team: web}
    maxUnavailable: 1
`

func withNodeSets(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	writeFile(t, path, nodeSets)
	return helm(t, append([]string{"--values", path}, args...)...)
}

func daemonSets(t *testing.T, objects []*unstructured.Unstructured) map[string]*appsv1.DaemonSet {
	t.Helper()
	sets := map[string]*appsv1.DaemonSet{}
	for _, set := range all[*appsv1.DaemonSet](t, objects) {
		sets[set.Name] = set
	}
	return sets
}

// TestOneDaemonOnANodeOfASet asks the scheduler's own code on which nodes each DaemonSet has a pod.
func TestOneDaemonOnANodeOfASet(t *testing.T) {
	sets := daemonSets(t, withNodeSets(t))
	if len(sets) != 4 {
		t.Fatalf("there are %d DaemonSets, want four", len(sets))
	}
	for node, want := range map[string]string{
		"tier=batch,kubernetes.io/arch=amd64":                          "katbox",
		"tier=batch,kubernetes.io/arch=arm64,disk=ssd":                 "katbox",
		"tier=batch,kubernetes.io/arch=s390x":                          "",
		"tier=web,kubernetes.io/arch=amd64":                            "",
		"tier=batch,kubernetes.io/arch=amd64,disk=nvme":                "katbox-nvme",
		"tier=batch,kubernetes.io/arch=amd64,disk=nvme,zone=a":         "katbox-nvme",
		"tier=batch,kubernetes.io/arch=amd64,disk=hdd":                 "katbox",
		"tier=batch,kubernetes.io/arch=arm64,disk=hdd,zone=a":          "katbox-zone-a",
		"tier=batch,kubernetes.io/arch=amd64,disk=hdd,zone=b":          "katbox",
		"tier=web,kubernetes.io/arch=s390x,disk=hdd,zone=b":            "katbox-other",
		"tier=web,kubernetes.io/arch=amd64,disk=hdd,zone=c":            "",
		"tier=batch,kubernetes.io/arch=amd64,disk=ssd,zone=a":          "katbox",
		"tier=batch,kubernetes.io/arch=amd64,zone=a,other=thing":       "katbox",
		"tier=batch,kubernetes.io/arch=amd64,disk=nvme,zone=b,other=1": "katbox-nvme",
	} {
		set, err := labels.ConvertSelectorToLabelsMap(node + ",kubernetes.io/os=linux")
		if err != nil {
			t.Fatal(err)
		}
		var has []string
		for name, ds := range sets {
			matches, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: ds.Spec.Template.Spec}).
				Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: set}})
			if err != nil {
				t.Fatal(err)
			}
			if matches {
				has = append(has, name)
			}
		}
		if got := strings.Join(has, " and "); got != want {
			t.Errorf("a node with %s has daemons of %q, want %q", node, got, want)
		}
	}
}

// TestNodeSetsHaveValuesOfTheirOwn, also those that are empty or false, and all others are those of the release.
func TestNodeSetsHaveValuesOfTheirOwn(t *testing.T) {
	objects := withNodeSets(t, "--set", "gateway.enabled=true,networkPolicy.enabled=true")
	acceptAll(t, objects)
	sets := daemonSets(t, objects)
	flags := func(name, flag string) string { return flagsOf(sets[name].Spec.Template.Spec.Containers[0])[flag] }
	for name, want := range map[string][3]string{
		"katbox": {"2d", "0.1", "/var/lib/kubelet"}, "katbox-nvme": {"7d", "0.2", "/var/lib/kubelet"},
		"katbox-zone-a": {"2d", "0.1", "/var/lib/kubelet"}, "katbox-other": {"2d", "0.1", "/data/kubelet"},
	} {
		got := [3]string{flags(name, "--afterlifespan"), flags(name, "--headroom"), flags(name, "--kubelet-dir")}
		if got != want || flags(name, "--drivername") != "katbox.csi.paypal.com" {
			t.Errorf("%s has %q of the driver %s, want %q", name, got, flags(name, "--drivername"), want)
		}
		_, noexec := flagsOf(sets[name].Spec.Template.Spec.Containers[0])["--keep-noexec"]
		if noexec == (name == "katbox-nvme") {
			t.Errorf("%s keeps noexec: %t", name, noexec)
		}
		spec := sets[name].Spec.Template.Spec
		least := name == "katbox-zone-a"
		if (len(spec.Tolerations) == 0) != least || (len(spec.Containers[0].Resources.Requests) == 0) != least {
			t.Errorf("%s has the tolerations %v and the resources %v", name, spec.Tolerations, spec.Containers[0].Resources)
		}
		workdir := spec.Volumes[0].HostPath
		if (workdir.Path == "/mnt/nvme/katbox") != (name == "katbox-nvme") || *workdir.Type != corev1.HostPathDirectoryOrCreate {
			t.Errorf("%s has its files in %s", name, workdir.Path)
		}
		if spec.ServiceAccountName != "katbox" || (sets[name].Spec.Template.Labels["team"] == "web") != (name == "katbox-other") {
			t.Errorf("%s has the account %s and the labels %v", name, spec.ServiceAccountName, sets[name].Spec.Template.Labels)
		}
	}
	// One gateway and one policy for the pods of all of them.
	selector, err := labels.Parse(flagsOf(one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0])["--node-selector"])
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range sets {
		pods := labels.Set(set.Spec.Template.Labels)
		guards := func(p *networkingv1.NetworkPolicy) bool {
			return labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(pods)
		}
		if !selector.Matches(pods) || !slices.ContainsFunc(all[*networkingv1.NetworkPolicy](t, objects), guards) {
			t.Errorf("the gateway or the policy does not know the pods of %s: %v", name, pods)
		}
	}
}

// TestNodeSetsKeepTheDaemonSet that is there: its selector cannot change, and none of a set selects its pods.
func TestNodeSetsKeepTheDaemonSet(t *testing.T) {
	before := one[*appsv1.DaemonSet](t, helm(t))
	sets := daemonSets(t, withNodeSets(t))
	if got := sets[before.Name].Spec.Selector.String(); got != before.Spec.Selector.String() {
		t.Errorf("the selector is %s, and was %s", got, before.Spec.Selector)
	}
	for name, set := range sets {
		for other, ds := range sets {
			selects := labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(labels.Set(ds.Spec.Template.Labels))
			// That of the release has fewer labels; each pod is of the DaemonSet that its owner reference names.
			if selects != (name == other || name == before.Name) {
				t.Errorf("%s selects the pods of %s: %t", name, other, selects)
			}
		}
	}
}

// TestNodeSetsMayNotOverlap: a node with two daemons of one driver would have none that works.
func TestNodeSetsMayNotOverlap(t *testing.T) {
	for _, test := range []struct {
		want string // empty: they may
		sets []string
	}{
		{"", []string{`disk: a`, `disk: b`}},
		{"", []string{`disk: a, zone: z`, `disk: b, zone: z`}},
		{`the set a ({"disk":"a"}) and in the set b`, []string{`disk: a`, `zone: b`}},
		{"a node may be in the set a", []string{`disk: a`, `disk: a`}},
		{"a node may be in the set a", []string{`disk: a`, `disk: a, zone: b`}},
		{"a node may be in the set b", []string{`disk: a`, `disk: b`, `disk: b, zone: c`}},
	} {
		values := "nodeSets:\n"
		for i, selector := range test.sets {
			values += fmt.Sprintf("- {name: %c, nodeSelector: {%s}}\n", 'a'+i, selector)
		}
		refused(t, values, test.want)
	}
	refused(t, "nodeSets: [{name: a, nodeSelector: {disk: a}}, {name: a, nodeSelector: {disk: b}}]", "two sets are named a")
	refused(t, "nodeSets: [{name: a, nodeSelector: {disk: a}, localPools: [{poolClass: c, path: /a/b}]}]",
		"localPools needs pools.enabled=true")
}

// refused reports whether the chart refuses values with these words; without words it has to take them.
func refused(t *testing.T, values, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	writeFile(t, path, values)
	_, err := template("--values", path)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", values, err, want)
	}
}

// TestLocalPoolsOfASet: the controller serves nodes whose pools are those of a set alone.
func TestLocalPoolsOfASet(t *testing.T) {
	objects := helm(t, "--set", "pools.enabled=true", "--set-json",
		`nodeSets=[{"name":"nvme","nodeSelector":{"disk":"nvme"},"localPools":[{"poolClass":"fast","path":"/mnt/pools/fast"}]}]`)
	sets := daemonSets(t, objects)
	for name, want := range map[string]string{"katbox": "", "katbox-nvme": "fast=/mnt/pools/fast"} {
		if got := flagsOf(sets[name].Spec.Template.Spec.Containers[0])["--local-pool"]; got != want {
			t.Errorf("%s has the pool %q, want %q", name, got, want)
		}
	}
	controller := one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0]
	if flagsOf(controller)["--local-endpoint"] == "" {
		t.Errorf("the controller has the flags %v", controller.Args)
	}
}

// TestAlertsKnowNodeSets: a daemon of a set that does not start is one that does not start.
func TestAlertsKnowNodeSets(t *testing.T) {
	expr := alertsOf(t, find(t, withNodeSets(t, "--set", "prometheusRule.enabled=true"), "PrometheusRule"))["KatboxNotStarting"].Expr
	if !strings.Contains(expr, `created_by_name=~"katbox|katbox-nvme|katbox-zone-a|katbox-other"`) {
		t.Errorf("the query is %s", expr)
	}
}

// TestLongNamesOfNodeSets stay within what a name may have, and differ.
func TestLongNamesOfNodeSets(t *testing.T) {
	objects := withNodeSets(t, "--set", "fullnameOverride="+strings.Repeat("a", 52))
	for name := range daemonSets(t, objects) {
		if len(name) > 52 {
			t.Errorf("%s has %d letters", name, len(name))
		}
	}
	acceptAll(t, objects)
}
