package lastwords

import (
	"regexp"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/model/volume"
)

// containerName is what Kubernetes allows.
var containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

const compressed = ".gz"

// name is one file of one container.
type name struct{ container, file string }

// newer orders the files of a container: the newest first.
func newer(a, b name) int {
	first, _ := crilog.ParseName(a.file)
	second, _ := crilog.ParseName(b.file)
	return second.Compare(first)
}

// Pod is a pod whose directory is followed.
type Pod struct {
	UID             volume.PodUID
	Namespace, Name string
}

// directory is the name of the pod's directory; empty if it can have none.
func (p Pod) directory() string {
	_, err := volume.ParsePodUID("pod", string(p.UID))
	if err != nil || p.Namespace == "" || volume.ObjectName(p.Namespace) == "" || p.Name == "" || volume.ObjectName(p.Name) == "" {
		return ""
	}
	whole := p.Namespace + "_" + p.Name + "_" + string(p.UID)
	if len(whole) > volume.MaxNameLength || whole[0] == '.' {
		return ""
	}
	return whole
}
