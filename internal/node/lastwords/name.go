package lastwords

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

var (
	// containerName is what Kubernetes allows.
	containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	// fileName is how the kubelet calls what a container prints: the number of its restart, and for what was rotated the
	// time of that.
	fileName = regexp.MustCompile(`^([0-9]{1,9})\.log(\.[0-9]{8}-[0-9]{6}(\.gz)?)?$`)
)

const compressed = ".gz"

// name is one file of one container.
type name struct{ container, file string }

// newer orders the files of a container: the newest first.
func newer(a, b name) int {
	restartOf := func(n name) (restart int, rotated string) {
		parts := fileName.FindStringSubmatch(n.file)
		restart, _ = strconv.Atoi(parts[1])
		return restart, strings.TrimSuffix(parts[2], compressed)
	}
	aRestart, aRotated := restartOf(a)
	bRestart, bRotated := restartOf(b)
	switch {
	case aRestart != bRestart:
		return cmp.Compare(bRestart, aRestart)
	case aRotated == "" || bRotated == "":
		return cmp.Compare(aRotated, bRotated) // what was not rotated is the newest
	}
	return cmp.Compare(bRotated, aRotated)
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
