package verbs

import (
	"fmt"
	"strings"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// targetNotes end the usage of each verb that takes a target.
const targetNotes = `TARGET is NAMESPACE/POD, NAMESPACE/POD/VOLUME, or the ID of a volume (katbox ls -o wide).
PATH begins at the top of the volume. If there is one more colon before it, it is percent-encoded:
NAMESPACE/POD::out/a%0Ab. So writes -o name a path that a terminal cannot show.`

// target is what the user names: volumes, and perhaps a path in them.
type target struct {
	id string
	// Without an ID: the names of the pod's namespace, the pod, and the volume in the pod.
	// Only ls knows targets without a pod.
	namespace, pod, volume string
	// hasPath says that a colon came. path is the path behind it, as the API takes it.
	hasPath bool
	path    string
}

// parseTarget reads NAMESPACE/POD[/VOLUME][:PATH] or ID[:PATH].
func parseTarget(text string) (target, error) {
	head, path, hasPath, err := verbs.CutTarget(text)
	t := target{hasPath: hasPath, path: path}
	if err != nil {
		return t, err
	}
	if !strings.Contains(head, "/") {
		if _, err := volume.ParseID("ID", head); err != nil {
			return t, verbs.WrongUsage("%s is neither NAMESPACE/POD[/VOLUME][:PATH] nor the ID of a volume", verbs.Quoted(text))
		}
		t.id = head
		return t, nil
	}
	names := strings.Split(head, "/")
	for _, name := range names {
		if volume.ObjectName(name) == "" {
			return t, verbs.WrongUsage("%s is neither NAMESPACE/POD[/VOLUME][:PATH] nor the ID of a volume", verbs.Quoted(text))
		}
	}
	switch len(names) {
	case 2:
		t.namespace, t.pod = names[0], names[1]
	case 3:
		t.namespace, t.pod, t.volume = names[0], names[1], names[2]
	default:
		return t, verbs.WrongUsage("%s has more than NAMESPACE/POD/VOLUME; a path comes after a colon", verbs.Quoted(text))
	}
	return t, nil
}

// isID reports whether a name is that of a volume: an inline one's, or that of a claim, which begins with "pvc-" and has
// the claim's UID.
func isID(name string) bool {
	uid, ok := strings.CutPrefix(name, "pvc-")
	return volume.ID(name).FromKubelet() || ok && volume.PodUID(uid).FromKubelet()
}

// parseSelector reads what ls lists: a target, or NAMESPACE. The ID of an inline volume is
// longer than any name of a namespace.
func parseSelector(text string) (target, error) {
	t, err := parseTarget(text)
	if err == nil && t.id != "" && !t.hasPath && !isID(t.id) {
		if volume.ObjectName(t.id) == "" {
			return t, verbs.WrongUsage("%s is neither a namespace nor the ID of a volume", verbs.Quoted(text))
		}
		return target{namespace: t.id}, nil
	}
	return t, err
}

// String returns the target for messages.
func (t target) String() string {
	if t.id != "" {
		return t.id
	}
	return strings.TrimRight(t.namespace+"/"+t.pod+"/"+t.volume, "/")
}

// nameOf returns the target of a volume, without its ID if that is possible.
func nameOf(v api.Volume) string {
	if v.Namespace == "" || v.Pod == "" || v.Volume == "" {
		return v.ID
	}
	return v.Namespace + "/" + v.Pod + "/" + v.Volume
}

// describe returns a volume for messages: "volume scratch of pod etl/nightly-x7k2q".
func describe(v api.Volume) string {
	if v.Claim != "" {
		return fmt.Sprintf("volume %s of claim %s/%s", v.ID, v.Namespace, v.Claim)
	}
	if v.Namespace == "" || v.Pod == "" || v.Volume == "" {
		return "volume " + v.ID
	}
	return fmt.Sprintf("volume %s of pod %s/%s", v.Volume, v.Namespace, v.Pod)
}
