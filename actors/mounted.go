package actors

import (
	"strings"

	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

// mounted is what one reading of the mount table has found. It is shared, and does
// not change.
type mounted struct {
	// targets are by what is mounted there: <pod>/<volume> for the data directory and
	// all in it, <pod> for the directory of a pod.
	targets map[string][]string
}

// sortBindings makes it cheap to ask about one volume after the other.
func sortBindings(bindings []mount.Binding) *mounted {
	m := &mounted{targets: make(map[string][]string, len(bindings))}
	for _, b := range bindings {
		what := b.Source
		if pod, below, ok := strings.Cut(b.Source, "/"); ok {
			id, _, _ := strings.Cut(below, "/")
			what = b.Source[:len(pod)+1+len(id)]
		}
		m.targets[what] = append(m.targets[what], b.Target)
	}
	return m
}

// volume returns where the volume's data directory, or something in it, is mounted.
func (m *mounted) volume(p volume.Place) []string {
	return m.targets[p.String()]
}

// pod returns where the directory that a pod's volumes are in is mounted for a pod,
// as if it were a volume itself; "" when it is not.
func (m *mounted) pod(pod volume.PodUID, podsDir string) string {
	for _, target := range m.targets[string(pod)] {
		if strings.HasPrefix(target, podsDir+"/") {
			return target
		}
	}
	return ""
}

// all returns where the working directory, or one that it is in, is mounted for a
// pod; "" when it is not.
func (m *mounted) all() string {
	if targets := m.targets[mount.Above]; len(targets) > 0 {
		return targets[0]
	}
	return ""
}
