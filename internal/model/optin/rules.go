package optin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/katbox/katbox/internal/model/api"
)

// Rule says what is left alone, twice: in CEL, for the API server, and in Go.
type Rule[T any] struct {
	// Name is that of the rule, of small letters and dashes.
	Name string
	// Because is the reason, of which the pod or the volume is the subject.
	Because string
	// CEL is true of what is left alone. A pod is called object, a volume v.
	CEL string

	holds func(T) bool
}

// Pods are the rules for pods that are left alone as a whole.
var Pods = []Rule[*Pod]{
	{
		"opted-out", "has the label " + Label + "=" + Drop,
		`object.metadata.?labels[?'` + Label + `'].orValue('') == '` + Drop + `'`,
		func(p *Pod) bool { return p.Metadata.Labels[Label] == Drop },
	},
	{
		"mirror", "is the mirror of a static pod, which the kubelet runs as it is in its file",
		`'kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({})`,
		func(p *Pod) bool { _, ok := p.Metadata.Annotations["kubernetes.io/config.mirror"]; return ok },
	},
	{
		"bound", "names its node, and that may be one without Katbox",
		`object.spec.?nodeName.orValue('') != ''`,
		func(p *Pod) bool { return p.Spec.NodeName != "" },
	},
	{
		"daemon-set", "belongs to a DaemonSet, so its node is fixed, and that may be one without Katbox",
		`object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'DaemonSet')`,
		func(p *Pod) bool {
			for _, o := range p.Metadata.OwnerReferences {
				if o.Kind == "DaemonSet" {
					return true
				}
			}
			return false
		},
	},
	{
		"critical", "is critical for the node or the cluster: Katbox may need it in order to run",
		`object.spec.?priorityClassName.orValue('').startsWith('system-')`,
		func(p *Pod) bool { return strings.HasPrefix(p.Spec.PriorityClassName, "system-") },
	},
	{
		"windows", "is for Windows",
		`object.spec.?os.?name.orValue('') == 'windows' || ` +
			`object.spec.?nodeSelector[?'kubernetes.io/os'].orValue('') == 'windows' || ` +
			`object.spec.?nodeSelector[?'beta.kubernetes.io/os'].orValue('') == 'windows' || ` +
			requiredTerms + `.exists(t, t.?matchExpressions.orValue([]).exists(e, ` +
			`e.key == 'kubernetes.io/os' && 'windows' in e.?values.orValue([])))`,
		windows,
	},
	{
		"virtual-node", "is for a virtual node, which has no disk",
		`object.spec.?nodeSelector[?'type'].orValue('') == 'virtual-kubelet' || ` +
			`object.spec.?nodeSelector[?'eks.amazonaws.com/compute-type'].orValue('') == 'fargate' || ` +
			`'eks.amazonaws.com/fargate-profile' in object.metadata.?labels.orValue({})`,
		func(p *Pod) bool {
			_, fargate := p.Metadata.Labels["eks.amazonaws.com/fargate-profile"]
			return fargate || p.Spec.NodeSelector["type"] == "virtual-kubelet" ||
				p.Spec.NodeSelector["eks.amazonaws.com/compute-type"] == "fargate"
		},
	},
}

// requiredTerms are the terms of a pod's affinity to nodes, in CEL.
const requiredTerms = `object.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])`

func windows(p *Pod) bool {
	const name, key = "windows", "kubernetes.io/os"
	if p.Spec.OS.Name == name || p.Spec.NodeSelector[key] == name || p.Spec.NodeSelector["beta."+key] == name {
		return true
	}
	for _, t := range p.Spec.Affinity.NodeAffinity.Required.Terms {
		for _, e := range t.MatchExpressions {
			if e.Key == key && slices.Contains(e.Values, name) {
				return true
			}
		}
	}
	return false
}

// subject is a volume of a pod.
type subject struct {
	*Volume
	pod *Pod
}

// Volumes are the rules for volumes that are never converted.
var Volumes = []Rule[subject]{
	{
		"not-empty-dir", "is not an emptyDir", `!has(v.emptyDir)`,
		func(s subject) bool { return !s.IsEmptyDir },
	},
	{
		"medium", "is in memory or in huge pages, and not on the disk", `v.emptyDir.?medium.orValue('') != ''`,
		func(s subject) bool { return s.Medium != "" },
	},
	{
		"unknown-field", "has a field that Katbox does not know, and would lose",
		`v.exists(k, !(k in ['name', 'emptyDir'])) || v.emptyDir.exists(k, !(k in ['medium', 'mode', 'sizeLimit']))`,
		func(s subject) bool { return s.unknown },
	},
	{
		"file-key", "has files that an env.valueFrom.fileKeyRef names, and those have to be in an emptyDir",
		`variables.containers.exists(c, c.?env.orValue([]).exists(e, ` +
			`e.?valueFrom.?fileKeyRef.?volumeName.orValue('') == v.name))`,
		func(s subject) bool {
			for _, c := range s.pod.containers() {
				for _, e := range c.Env {
					if e.ValueFrom.FileKeyRef.VolumeName == s.Name {
						return true
					}
				}
			}
			return false
		},
	},
	{
		"size", "has a sizeLimit that is not from " + api.LeastBytes + " to " + api.MostBytes,
		`has(v.emptyDir.sizeLimit) && !(string(v.emptyDir.sizeLimit).matches(r'` + api.QuantityForm + `') && ` +
			`quantity(string(v.emptyDir.sizeLimit)).compareTo(quantity('` + api.LeastBytes + `')) >= 0 && ` +
			`quantity(string(v.emptyDir.sizeLimit)).compareTo(quantity('` + api.MostBytes + `')) <= 0)`,
		func(s subject) bool { return s.SizeLimit != "" && !fits(s.SizeLimit) },
	},
	{
		"mode", "has a mode that is not permissions from 0001 to 1777",
		`has(v.emptyDir.mode) && !(v.emptyDir.mode >= 1 && v.emptyDir.mode <= 1023)`,
		func(s subject) bool { return s.Mode != nil && (*s.Mode < 1 || *s.Mode > 0o1777) },
	},
}

var quantityForm = regexp.MustCompile(api.QuantityForm)

func fits(limit string) bool {
	q, err := resource.ParseQuantity(limit)
	return err == nil && quantityForm.MatchString(limit) &&
		q.Cmp(resource.MustParse(api.LeastBytes)) >= 0 && q.Cmp(resource.MustParse(api.MostBytes)) <= 0
}

// Names are the rules for volumes by their names, which a pod's annotation or a preset can overrule.
var Names = []Rule[subject]{
	name("mesh", "belongs to a service mesh", `^(istio-|istiod-|workload-|credential-socket$|linkerd-|consul-connect-|kuma-)`),
	name("builder", "belongs to the program that made the pod", `^(tekton-|var-run-argo$|tmp-dir-argo$)`),
	name("secrets", "has secrets, as its name says, and would keep them readable",
		`(secret|credential|password|token|cert|ssh|gpg|docker-?config|kubeconfig|netrc)`),
}

// name is a rule for names that match a regular expression.
func name(name, because, form string) Rule[subject] {
	matches := regexp.MustCompile(form)
	return Rule[subject]{name, because, fmt.Sprintf("v.name.matches(r'%s')", form),
		func(s subject) bool { return matches.MatchString(s.Name) }}
}
