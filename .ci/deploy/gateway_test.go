package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	scheme "k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/pod-security-admission/api"

	"helm.sh/helm/v3/pkg/releaseutil"
)

// gateways are the ways to install a gateway, with the objects of each.
func gateways(t *testing.T) map[string][]*unstructured.Unstructured {
	return map[string][]*unstructured.Unstructured{
		"overlay":    kustomize(t, "overlays/with-gateway"),
		"components": kustomize(t, withAll),
		"on nodes":   kustomize(t, withHostNetwork),
		"chart":      helm(t, "--set", "gateway.enabled=true"),
		"with ports of its own": helm(t, "--set", "gateway.enabled=true,hostNetwork=true,"+
			"gateway.hostNetwork=true,gateway.port=8443,gateway.nodesPort=9543,gateway.httpPort=9544"),
		"renamed": helm(t, "--namespace", "batch", "--set", "gateway.enabled=true,hostNetwork=true,sidecars.enabled=true,"+
			"fullnameOverride=a-name-that-is-just-short-enough-for-what-is-added-x"),
		"cert-manager": helm(t, "--set", "gateway.enabled=true,gateway.certificates.mode=certManager"),
		"given": helm(t, "--set", "gateway.enabled=true,"+
			"gateway.certificates.mode=existingSecret,gateway.certificates.existingSecret=mine"),
	}
}

// all returns the objects of a kind, as the server makes them.
func all[T any](t *testing.T, objects []*unstructured.Unstructured) (some []T) {
	t.Helper()
	for _, o := range objects {
		if group := o.GroupVersionKind().Group; group == "monitoring.coreos.com" || group == "cert-manager.io" {
			continue
		}
		object, err := accept(o)
		if err != nil {
			t.Fatal(err)
		}
		if object, ok := object.(T); ok {
			some = append(some, object)
		}
	}
	return some
}

// one returns the only object of a kind.
func one[T any](t *testing.T, objects []*unstructured.Unstructured) T {
	t.Helper()
	some := all[T](t, objects)
	if len(some) != 1 {
		t.Fatalf("there are %d of %T, want one", len(some), some)
	}
	return some[0]
}

// flagsOf returns the flags of a container with their values.
func flagsOf(container corev1.Container) map[string]string {
	flags := map[string]string{}
	for _, arg := range container.Args {
		name, value, _ := strings.Cut(arg, "=")
		flags[name] = value
	}
	return flags
}

// TestNoGatewayByDefault: nothing of it is there, and the daemon dials nobody.
func TestNoGatewayByDefault(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{"base": kustomize(t, "base"), "chart": helm(t)} {
		for _, o := range objects {
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "gateway") || o.GetKind() == "Deployment" {
				t.Errorf("%s: %s %s is of the gateway", name, o.GetKind(), o.GetName())
			}
		}
	}
}

// TestGatewayIsHarmless: the strictest profile admits its pod, except for the node's network, and one replica at least
// is always there, by all that Kubernetes does on purpose.
func TestGatewayIsHarmless(t *testing.T) {
	for name, objects := range gateways(t) {
		deployment, budget := one[*appsv1.Deployment](t, objects), one[*policyv1.PodDisruptionBudget](t, objects)
		template := deployment.Spec.Template
		pod := *template.Spec.DeepCopy()
		pod.HostNetwork = false
		if refused := evaluate(t, api.LevelRestricted, &template.ObjectMeta, &pod); refused != "" {
			t.Errorf("%s: %s", name, refused)
		}
		container := template.Spec.Containers[0]
		if s := container.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: it can write to its root file system", name)
		}
		// OpenShift refuses a pod that chooses its user, and the image has one.
		if container.SecurityContext.RunAsUser != nil || template.Spec.SecurityContext.RunAsUser != nil {
			t.Errorf("%s: it runs as a user of its choice", name)
		}
		update := deployment.Spec.Strategy.RollingUpdate
		// On the node's network a third one may find no node.
		unavailable, surge := "0", "1"
		if template.Spec.HostNetwork {
			unavailable, surge = "1", "0"
		}
		if *deployment.Spec.Replicas != 2 || update.MaxUnavailable.String() != unavailable || update.MaxSurge.String() != surge {
			t.Errorf("%s: %d replicas, updated by %v", name, *deployment.Spec.Replicas, update)
		}
		pods := labels.Set(template.Labels)
		if !labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(pods) || budget.Spec.MaxUnavailable.String() != "1" {
			t.Errorf("%s: the budget is %+v for pods %v", name, budget.Spec, pods)
		}
		apart := template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		if len(apart) != 2 || !labels.SelectorFromSet(apart[0].PodAffinityTerm.LabelSelector.MatchLabels).Matches(pods) {
			t.Errorf("%s: its pods are kept apart by %+v", name, apart)
		}
		// A pod of the gateway is none of the DaemonSet's, for the policies and monitors of either.
		set := one[*appsv1.DaemonSet](t, objects)
		if labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(pods) {
			t.Errorf("%s: the DaemonSet selects the pods %v", name, pods)
		}
		if template.Spec.PriorityClassName != "system-cluster-critical" || !slices.ContainsFunc(all[*corev1.ResourceQuota](t, objects),
			func(q *corev1.ResourceQuota) bool {
				return slices.Equal(q.Spec.ScopeSelector.MatchExpressions[0].Values, []string{"system-cluster-critical"})
			}) {
			t.Errorf("%s: no quota admits pods of the priority class %s", name, template.Spec.PriorityClassName)
		}
	}
}

// TestServicesReachTheGateway: the API server and the daemons ask for names, and arrive at ports that
// the pod has. The gateway is told the names, for its certificate.
func TestServicesReachTheGateway(t *testing.T) {
	for name, objects := range gateways(t) {
		deployment, registered := one[*appsv1.Deployment](t, objects), one[*apiregistrationv1.APIService](t, objects)
		flags := flagsOf(deployment.Spec.Template.Spec.Containers[0])
		services := map[string]*corev1.Service{}
		for _, service := range all[*corev1.Service](t, objects) {
			services[service.Name] = service
			if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) ||
				service.Namespace != deployment.Namespace {
				t.Errorf("%s: the Service %s selects pods %v of %s", name, service.Name, service.Spec.Selector, service.Namespace)
			}
			target := service.Spec.Ports[0].TargetPort.StrVal
			if !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports,
				func(p corev1.ContainerPort) bool { return p.Name == target }) {
				t.Errorf("%s: the Service %s leads to a port %s, and there is none", name, service.Name, target)
			}
		}
		asked := registered.Spec.Service
		if service := services[asked.Name]; service == nil || asked.Namespace != service.Namespace || *asked.Port != service.Spec.Ports[0].Port ||
			flags["--service"] != asked.Name {
			t.Errorf("%s: the API server asks %+v, and the gateway is told %s", name, asked, flags["--service"])
		}
		nodes := services[flags["--nodes-service"]]
		if nodes == nil || nodes.Spec.ClusterIP != corev1.ClusterIPNone || !nodes.Spec.PublishNotReadyAddresses {
			t.Errorf("%s: the daemons' Service is %+v", name, nodes)
		}
	}
}

// portsOf returns the ports of a container by their names.
func portsOf(container corev1.Container) map[string]int32 {
	ports := map[string]int32{}
	for _, port := range container.Ports {
		ports[port.Name] = port.ContainerPort
	}
	return ports
}

// TestGatewayListensWhereItIsAskedFor: its flags, or what it does without them, are the ports of its pod. A headless
// Service leads to no other port than the one that is asked for.
func TestGatewayListensWhereItIsAskedFor(t *testing.T) {
	for name, objects := range gateways(t) {
		container := one[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0]
		flags := flagsOf(container)
		for port, flag := range map[string]struct{ name, otherwise string }{
			"api": {"--api-endpoint", ":10250"}, "nodes": {"--nodes-endpoint", ":9443"}, "metrics": {"--http-endpoint", ""},
		} {
			got, given := flags[flag.name]
			if !given {
				got = flag.otherwise
			}
			if want := fmt.Sprintf(":%d", portsOf(container)[port]); got != want {
				t.Errorf("%s: it listens on %s for %s, and the pod says %s", name, got, port, want)
			}
		}
		for _, service := range all[*corev1.Service](t, objects) {
			if port := service.Spec.Ports[0]; service.Spec.ClusterIP == corev1.ClusterIPNone && port.Port != portsOf(container)["nodes"] {
				t.Errorf("%s: the daemons ask at %d, and the pod has %v", name, port.Port, portsOf(container))
			}
		}
	}
}

// TestGatewayOnTheNodesNetwork: none of its ports is the kubelet's or another one of Katbox on that node. The scheduler
// knows them, so it gives each replica a node of its own, and a node on which no other pod has them.
func TestGatewayOnTheNodesNetwork(t *testing.T) {
	everything := []string{"--values", "testdata/accepted/gateway-everything.yaml", "--values", "testdata/accepted/gateway-host-network.yaml"}
	pools := []string{"--set", "pools.enabled=true,gateway.enabled=true,gateway.hostNetwork=true"}
	for name, objects := range map[string][]*unstructured.Unstructured{
		"component": kustomize(t, withHostNetwork), "everything": helm(t, everything...), "with pools": helm(t, pools...),
		"chart": helm(t, "--set", "gateway.enabled=true,gateway.hostNetwork=true"),
	} {
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Deployment" && strings.HasSuffix(o.GetName(), "-controller")
		})
		spec := one[*appsv1.Deployment](t, objects).Spec.Template.Spec
		if !spec.HostNetwork || spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
			t.Errorf("%s: host network %t, names are resolved by %s", name, spec.HostNetwork, spec.DNSPolicy)
		}
		taken := map[int32]string{10248: "the kubelet", 10250: "the kubelet", 10255: "the kubelet", 10249: "kube-proxy", 10256: "kube-proxy"}
		if daemon := one[*appsv1.DaemonSet](t, objects).Spec.Template.Spec; daemon.HostNetwork {
			for _, container := range daemon.Containers {
				for _, port := range container.Ports {
					taken[port.ContainerPort] = "the daemon"
				}
			}
		}
		// What is told to the scheduler is a pod's.
		pod := &corev1.Pod{Spec: *spec.DeepCopy()}
		scheme.Scheme.Default(pod)
		for _, port := range pod.Spec.Containers[0].Ports {
			if port.HostPort != port.ContainerPort || taken[port.ContainerPort] != "" {
				t.Errorf("%s: %s has port %d, the scheduler thinks %d, and it is that of %q", name, port.Name, port.ContainerPort, port.HostPort,
					taken[port.ContainerPort])
			}
			taken[port.ContainerPort] = port.Name
		}
	}
	objects := kustomize(t, withHostNetwork)
	level := api.Level(find(t, objects, "Namespace").GetLabels()[api.EnforceLevelLabel])
	template := one[*appsv1.Deployment](t, objects).Spec.Template
	if refused := evaluate(t, level, &template.ObjectMeta, &template.Spec); refused != "" {
		t.Errorf("the namespace of the manifests does not admit it: %s", refused)
	}
	const both = "hostNetwork: true\n"
	for values, want := range map[string]string{
		"gateway: {enabled: true, port: 9443}":                               "9443 is that of gateway.port and of gateway.nodesPort",
		"gateway: {enabled: true, hostNetwork: true, httpPort: 4443}":        "4443 is that of gateway.port and of gateway.httpPort",
		both + "gateway: {enabled: true, hostNetwork: true, httpPort: 8080}": "8080 is that of gateway.httpPort and of the daemons'",
		"gateway: {enabled: true, hostNetwork: true, httpPort: 8080}":        "",
		both + "gateway: {enabled: true, httpPort: 8080}":                    "",
		"gateway: {enabled: true, hostNetwork: false, port: 10250}":          "",
	} {
		refused(t, values, want)
	}
}

// TestApplyingAgainKeepsWhatTheGatewayWrites: the manifests give none of it, so it is nobody else's.
// The API server is never told to believe whoever answers.
func TestApplyingAgainKeepsWhatTheGatewayWrites(t *testing.T) {
	for name, objects := range gateways(t) {
		for _, o := range objects {
			switch o.GetKind() {
			case "Secret", "ConfigMap":
				for _, field := range []string{"data", "stringData", "binaryData", "immutable"} {
					if _, there := o.Object[field]; there {
						t.Errorf("%s: %s %s gives %s", name, o.GetKind(), o.GetName(), field)
					}
				}
			case "APIService":
				for _, field := range []string{"caBundle", "insecureSkipTLSVerify"} {
					if _, there, err := unstructured.NestedFieldNoCopy(o.Object, "spec", field); there || err != nil {
						t.Errorf("%s: the APIService gives %s (%v)", name, field, err)
					}
				}
			}
		}
	}
}

// TestDaemonFindsTheGateway at its Service, with its CA, and with a token that is for the gateway
// alone. It gets none for the API server.
func TestDaemonFindsTheGateway(t *testing.T) {
	for name, objects := range gateways(t) {
		gateway, set := one[*appsv1.Deployment](t, objects), one[*appsv1.DaemonSet](t, objects)
		told := flagsOf(gateway.Spec.Template.Spec.Containers[0])
		spec := set.Spec.Template.Spec
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken ||
			told["--node-service-account"] != spec.ServiceAccountName {
			t.Errorf("%s: the daemon is %s, and the gateway expects %s", name, spec.ServiceAccountName, told["--node-service-account"])
		}
		selector, err := labels.Parse(told["--node-selector"])
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(set.Spec.Template.Labels)) {
			t.Errorf("%s: the gateway looks for daemons by %q (%v)", name, told["--node-selector"], err)
		}
		if spec.HostNetwork && spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
			t.Errorf("%s: the daemon cannot resolve the name of a Service", name)
		}
		daemon := spec.Containers[slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "katbox" })]
		flags := flagsOf(daemon)
		ports := portsOf(gateway.Spec.Template.Spec.Containers[0])
		if want := fmt.Sprintf("%s.%s.svc:%d", told["--nodes-service"], gateway.Namespace, ports["nodes"]); flags["--gateway"] != want {
			t.Errorf("%s: the daemon dials %s, want %s", name, flags["--gateway"], want)
		}
		mounted := slices.IndexFunc(daemon.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "gateway" })
		volume := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "gateway" })
		if mounted < 0 || volume < 0 || spec.Volumes[volume].Projected == nil {
			t.Fatalf("%s: nothing is mounted for the gateway", name)
		}
		files := map[string]bool{}
		for _, source := range spec.Volumes[volume].Projected.Sources {
			if token := source.ServiceAccountToken; token != nil {
				files[token.Path] = token.Audience == "katbox-gateway" && *token.ExpirationSeconds == 3600
			}
			if ca := source.ConfigMap; ca != nil {
				files[ca.Items[0].Path] = ca.Name == told["--ca-configmap"] && ca.Items[0].Key == "ca.crt" && *ca.Optional
			}
		}
		for _, flag := range []string{"--gateway-ca", "--gateway-token"} {
			file, below := strings.CutPrefix(flags[flag], daemon.VolumeMounts[mounted].MountPath+"/")
			if !below || !files[file] {
				t.Errorf("%s: the daemon is told %s %s, and has %+v", name, flag, flags[flag], spec.Volumes[volume].Projected)
			}
		}
		for _, v := range spec.Volumes {
			for _, source := range projected(v) {
				if token := source.ServiceAccountToken; token != nil && token.Audience != "katbox-gateway" {
					t.Errorf("%s: the daemon has a token for %q", name, token.Audience)
				}
			}
		}
	}
}

func projected(v corev1.Volume) []corev1.VolumeProjection {
	if v.Projected == nil {
		return nil
	}
	return v.Projected.Sources
}

// TestGatewayPolicy: daemons alone reach their port. With the network of the node they have its
// address, which no selector knows.
func TestGatewayPolicy(t *testing.T) {
	for name, objects := range gateways(t) {
		set, gateway := one[*appsv1.DaemonSet](t, objects), one[*appsv1.Deployment](t, objects)
		policies := all[*networkingv1.NetworkPolicy](t, objects)
		i := slices.IndexFunc(policies, func(p *networkingv1.NetworkPolicy) bool {
			return labels.SelectorFromSet(p.Spec.PodSelector.MatchLabels).Matches(labels.Set(gateway.Spec.Template.Labels))
		})
		if onNodes := gateway.Spec.Template.Spec.HostNetwork; (i < 0) != onNodes {
			t.Errorf("%s: the gateway has the node's network: %t, and a policy, which holds for no pod with that: %t", name, onNodes, i >= 0)
		}
		if i < 0 {
			continue
		}
		ports := map[string]networkingv1.NetworkPolicyIngressRule{}
		for _, rule := range policies[i].Spec.Ingress {
			ports[rule.Ports[0].Port.StrVal] = rule
		}
		from := ports["nodes"].From
		switch _, open := ports["api"]; {
		case !open || len(ports["api"].From) > 0 || len(ports["metrics"].From) != 1:
			t.Errorf("%s: the policy admits %+v", name, ports)
		case set.Spec.Template.Spec.HostNetwork:
			if _, open := ports["nodes"]; !open || len(from) > 0 {
				t.Errorf("%s: the policy admits to the daemons' port %+v, and they have any address", name, from)
			}
		case len(from) != 2:
			t.Errorf("%s: the policy admits to the daemons' port %+v, want daemons, and other replicas", name, from)
		default:
			for i, of := range []labels.Set{set.Spec.Template.Labels, gateway.Spec.Template.Labels} {
				selects := labels.SelectorFromSet(from[i].PodSelector.MatchLabels)
				others := []labels.Set{gateway.Spec.Template.Labels, set.Spec.Template.Labels}[i]
				if from[i].NamespaceSelector != nil || !selects.Matches(of) || selects.Matches(others) {
					t.Errorf("%s: the policy admits to the daemons' port %+v", name, from)
				}
			}
		}
	}
}

// TestRemovalTakesTheAPIServiceFirst: while it is there and no gateway answers, no namespace is
// deleted to the end. helm uninstall deletes by kind, and what is a hook or is kept it leaves.
func TestRemovalTakesTheAPIServiceFirst(t *testing.T) {
	if first := releaseutil.UninstallOrder[0]; first != "APIService" {
		t.Errorf("helm deletes each %s first", first)
	}
	registered := find(t, helm(t, "--set", "gateway.enabled=true"), "APIService")
	for annotation := range registered.GetAnnotations() {
		if strings.HasPrefix(annotation, "helm.sh/") {
			t.Errorf("the APIService has the annotation %s", annotation)
		}
	}
}

// TestGivenCertificatesAreMounted from another Secret than the one that the gateway writes.
func TestGivenCertificatesAreMounted(t *testing.T) {
	for name, want := range map[string]string{"chart": "", "cert-manager": "katbox-gateway-tls", "given": "mine"} {
		objects := gateways(t)[name]
		spec := one[*appsv1.Deployment](t, objects).Spec.Template.Spec
		flags := flagsOf(spec.Containers[0])
		if written := one[*corev1.Secret](t, objects).Name; flags["--cert-secret"] != written || written == want {
			t.Errorf("%s: it writes the Secret %s, and %s is there", name, flags["--cert-secret"], written)
		}
		if want == "" {
			if len(spec.Volumes) > 0 || flags["--cert-mode"] != "" {
				t.Errorf("%s: %v, %+v", name, flags, spec.Volumes)
			}
			continue
		}
		if flags["--cert-mode"] != "given" {
			t.Errorf("%s: the certificate is %q", name, flags["--cert-mode"])
		}
		if len(spec.Volumes) != 1 || spec.Volumes[0].Secret.SecretName != want ||
			spec.Containers[0].VolumeMounts[0].MountPath != flags["--cert-dir"] {
			t.Errorf("%s: %v, %+v, want the Secret %s mounted", name, flags, spec.Volumes, want)
		}
	}
}
