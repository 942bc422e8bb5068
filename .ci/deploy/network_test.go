package deploy

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// TestNetworkPolicy lets Prometheus reach the metrics and no other pod anything. The probes need
// no rule: what comes from a pod's own node is always admitted.
func TestNetworkPolicy(t *testing.T) {
	enabled := []string{"--set", "networkPolicy.enabled=true,httpPort=9090"}
	observability := []string{"--set-json", `networkPolicy.from=[{"namespaceSelector":{"matchLabels":{"team":"observability"}}}]`}
	for name, test := range map[string]struct {
		objects []*unstructured.Unstructured
		want    map[string]string
	}{
		"component":      {kustomize(t, withPolicy), map[string]string{corev1.LabelMetadataName: "monitoring"}},
		"chart":          {helm(t, enabled...), map[string]string{corev1.LabelMetadataName: "monitoring"}},
		"chart, another": {helm(t, append(enabled, observability...)...), map[string]string{"team": "observability"}},
		"chart, none":    {helm(t, append(enabled, "--set-json", "networkPolicy.from=[]")...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var policy *networkingv1.NetworkPolicy
			var set *appsv1.DaemonSet
			for _, o := range test.objects {
				object, err := accept(o)
				if err != nil {
					t.Fatal(err)
				}
				switch o := object.(type) {
				case *networkingv1.NetworkPolicy:
					policy = o
				case *appsv1.DaemonSet:
					set = o
				}
			}
			if policy == nil {
				t.Fatal("there is no NetworkPolicy")
			}
			pods, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
			if err != nil || pods.Empty() || !pods.Matches(labels.Set(set.Spec.Template.Labels)) || policy.Namespace != set.Namespace {
				t.Errorf("the policy is for pods %v of %s (%v)", pods, policy.Namespace, err)
			}
			if types := policy.Spec.PolicyTypes; len(types) != 1 || types[0] != networkingv1.PolicyTypeIngress {
				t.Errorf("the policy is for %v", types)
			}
			if test.want == nil {
				if len(policy.Spec.Ingress) > 0 {
					t.Errorf("with no peers the policy admits %+v", policy.Spec.Ingress)
				}
				return
			}
			if rules := policy.Spec.Ingress; len(rules) != 1 || len(rules[0].Ports) != 1 || len(rules[0].From) != 1 {
				t.Fatalf("the policy admits %+v, want one port for one peer", rules)
			}
			rule := policy.Spec.Ingress[0]
			if port := rule.Ports[0].Port; port.StrVal != "metrics" {
				t.Errorf("the policy admits to %v", port)
			}
			peer, err := metav1.LabelSelectorAsSelector(rule.From[0].NamespaceSelector)
			if err != nil || peer.Empty() || !peer.Matches(labels.Set(test.want)) {
				t.Errorf("the policy admits pods of %v (%v), want those of %v", peer, err, test.want)
			}
		})
	}
}

// TestNetworkOfTheNodes: daemons with the node's network may be told from pods, where the nodes have a network of their own.
func TestNetworkOfTheNodes(t *testing.T) {
	const nodes = "10.0.0.0/16"
	objects := helm(t, "--values", "testdata/accepted/pools-local.yaml", "--set", "gateway.enabled=true",
		"--set-json", `networkPolicy.nodes=[{"ipBlock":{"cidr":"`+nodes+`"}}]`)
	found := 0
	for _, p := range all[*networkingv1.NetworkPolicy](t, objects) {
		for _, rule := range p.Spec.Ingress {
			if rule.Ports[0].Port.StrVal != "nodes" {
				continue
			}
			found++
			from := rule.From
			if p.Name == "katbox-gateway" && len(from) == 2 && from[1].PodSelector != nil &&
				from[1].PodSelector.MatchLabels["app.kubernetes.io/name"] == "katbox-gateway" {
				from = from[:1] // its replicas ask one another
			}
			if len(from) != 1 || from[0].IPBlock == nil || from[0].IPBlock.CIDR != nodes {
				t.Errorf("%s admits %+v", p.Name, rule.From)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d policies have the port of the daemons, want those of the gateway and the controller", found)
	}
}
