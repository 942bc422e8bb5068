package optin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/api"
)

// Decision is what the policy does to a pod.
type Decision struct {
	// Because is why the pod is left alone as a whole; "" if it is not.
	Because string
	// Volumes has an entry for each volume of the pod.
	Volumes []Fate
	// Added is the volume that the pod gets beside its own; nil for none.
	Added *Added
	// Affinity: it only goes to nodes that Katbox has registered on.
	Affinity bool
}

// Fate is what becomes of a volume.
type Fate struct {
	Name string
	// Because is why it is left alone; "" if it is converted.
	Because string
	// Attributes are those of the volume that it becomes.
	Attributes map[string]string
}

// Added is a volume that a pod gets.
type Added struct {
	Volume, Path string
	Attributes   map[string]string
}

// AddedMode is the attribute mode of a volume that is added: that of /tmp.
const AddedMode = "1777"

// In says whether the policy looks at pods with these labels in a namespace, and if not, why.
func In(namespace string, namespaceLabels, podLabels map[string]string) (because string) {
	switch label := namespaceLabels[Label]; {
	case slices.Contains(System, namespace):
		return "namespace " + namespace + " is needed before Katbox can run"
	case label == Drop:
		return "namespace " + namespace + " has the label " + Label + "=" + Drop
	case label != Keep && podLabels[Label] != Keep:
		return "namespace " + namespace + " has no label " + Label + "=" + Keep
	}
	return ""
}

// Decide does what the policy does with a pod that it looks at.
func (p Params) Decide(pod *Pod, namespaceAnnotations map[string]string) Decision {
	for _, rule := range Pods {
		if rule.holds(pod) {
			return Decision{Because: rule.Because}
		}
	}
	var d Decision
	asked, presets := attributes(pod, namespaceAnnotations), p.presets(pod.Metadata.Labels)
	for i := range pod.Spec.Volumes {
		d.Volumes = append(d.Volumes, fate(subject{&pod.Spec.Volumes[i], pod}, presets, asked))
	}
	d.Added = p.added(pod, presets, asked)
	d.Affinity = p[AffinityKey] != AffinityNone &&
		(d.Added != nil || slices.ContainsFunc(d.Volumes, func(f Fate) bool { return f.Because == "" }))
	return d
}

func fate(s subject, presets [][]string, asked map[string]string) Fate {
	f := Fate{Name: s.Name}
	if f.Because = left(s, presets); f.Because != "" {
		return f
	}
	f.Attributes = with(asked, api.KeyConverted, api.Converted)
	if s.SizeLimit != "" {
		f.Attributes["sizeLimit"] = s.SizeLimit
	}
	if s.Mode != nil {
		f.Attributes["mode"] = fmt.Sprintf("%04o", *s.Mode)
	}
	return f
}

// left is why a volume is left alone; "" if it is not.
func left(s subject, presets [][]string) string {
	for _, rule := range Volumes {
		if rule.holds(s) {
			return rule.Because
		}
	}
	if names, ok := s.pod.Metadata.Annotations[VolumesAnnotation]; ok {
		for named := range strings.SplitSeq(names, ",") {
			if strings.TrimSpace(named) == s.Name {
				return ""
			}
		}
		return "is not one of those that the pod's annotation " + VolumesAnnotation + " names"
	}
	if line := has(presets, leaveLine, s.Name); line != "" {
		return because(line)
	}
	if has(presets, keepLine, s.Name) != "" {
		return ""
	}
	for _, rule := range Names {
		if rule.holds(s) {
			return rule.Because
		}
	}
	return ""
}

// attributes are what annotations ask for.
func attributes(pod *Pod, namespaceAnnotations map[string]string) map[string]string {
	asked := map[string]string{}
	for _, key := range Attributes {
		for _, annotations := range []map[string]string{namespaceAnnotations, pod.Metadata.Annotations} {
			if value, ok := annotations[AttributePrefix+key]; ok {
				asked[key] = value
			}
		}
	}
	return asked
}

func with(asked map[string]string, pairs ...string) map[string]string {
	all := maps.Clone(asked)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}
