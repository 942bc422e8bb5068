package optin

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Pod is what the rules look at of a pod, or of the template of one.
type Pod struct {
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`
}

// Metadata is that of an object.
type Metadata struct {
	Name            string            `json:"name"`
	GenerateName    string            `json:"generateName"`
	Namespace       string            `json:"namespace"`
	Labels          map[string]string `json:"labels"`
	Annotations     map[string]string `json:"annotations"`
	OwnerReferences []Owner           `json:"ownerReferences"`
}

// Owner is an object that made the pod.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Spec is that of a pod.
type Spec struct {
	NodeName          string            `json:"nodeName"`
	NodeSelector      map[string]string `json:"nodeSelector"`
	PriorityClassName string            `json:"priorityClassName"`
	OS                struct {
		Name string `json:"name"`
	} `json:"os"`
	Affinity struct {
		NodeAffinity struct {
			Required struct {
				Terms []struct {
					MatchExpressions []expression `json:"matchExpressions"`
				} `json:"nodeSelectorTerms"`
			} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
		} `json:"nodeAffinity"`
	} `json:"affinity"`
	Volumes        []Volume    `json:"volumes"`
	Containers     []container `json:"containers"`
	InitContainers []container `json:"initContainers"`
}

type expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type container struct {
	Env []struct {
		ValueFrom struct {
			FileKeyRef struct {
				VolumeName string `json:"volumeName"`
			} `json:"fileKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	VolumeMounts []struct {
		MountPath string `json:"mountPath"`
	} `json:"volumeMounts"`
	VolumeDevices []struct {
		DevicePath string `json:"devicePath"`
	} `json:"volumeDevices"`
}

// containers are all of a pod that are there when it is made.
func (p *Pod) containers() []container {
	return slices.Concat(p.Spec.Containers, p.Spec.InitContainers)
}

// Volume is one of a pod.
type Volume struct {
	Name string
	// IsEmptyDir says whether it is an emptyDir; the fields below are of one.
	IsEmptyDir bool
	Medium     string
	// SizeLimit is as the API server writes it; "" for none.
	SizeLimit string
	// Mode are its permissions; nil for none.
	Mode *int
	// CSI is the name of its driver, if it has one, and Attributes are those of that driver.
	CSI        string
	Attributes map[string]string
	// unknown: it has a field that no rule knows.
	unknown bool
}

// UnmarshalJSON reads a volume of a pod's spec.
func (v *Volume) UnmarshalJSON(text []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	var known struct {
		Name     string                     `json:"name"`
		EmptyDir map[string]json.RawMessage `json:"emptyDir"`
		CSI      struct {
			Driver     string            `json:"driver"`
			Attributes map[string]string `json:"volumeAttributes"`
		} `json:"csi"`
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}
	*v = Volume{Name: known.Name, IsEmptyDir: known.EmptyDir != nil, CSI: known.CSI.Driver, Attributes: known.CSI.Attributes}
	if !v.IsEmptyDir {
		return nil
	}
	for key := range fields {
		v.unknown = v.unknown || key != "name" && key != "emptyDir"
	}
	for key, value := range known.EmptyDir {
		if string(value) == "null" {
			continue
		}
		var err error
		switch key {
		case "medium":
			err = json.Unmarshal(value, &v.Medium)
		case "mode":
			err = json.Unmarshal(value, &v.Mode)
		case "sizeLimit":
			var limit resource.Quantity
			err = json.Unmarshal(value, &limit)
			v.SizeLimit = limit.String()
		default:
			v.unknown = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}
