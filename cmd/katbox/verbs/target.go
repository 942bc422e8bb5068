package verbs

import (
	"fmt"
	"strings"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/paths"
	"github.com/katbox/katbox/internal/terminal"
	"github.com/katbox/katbox/internal/volume"
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

// parseTarget reads NAMESPACE/POD[/VOLUME][:PATH] or ID[:PATH]. Names of Kubernetes' objects have
// no colon, so that the first one begins the path.
func parseTarget(text string) (target, error) {
	head, path, hasPath := strings.Cut(text, ":")
	t := target{hasPath: hasPath}
	if hasPath {
		var err error
		if t.path, err = parsePath(path); err != nil {
			return t, wrongUsage("%s: %s", quoted(text), err)
		}
	}
	if !strings.Contains(head, "/") {
		if _, err := volume.ParseID("ID", head); err != nil {
			return t, wrongUsage("%s is neither NAMESPACE/POD[/VOLUME][:PATH] nor the ID of a volume", quoted(text))
		}
		t.id = head
		return t, nil
	}
	names := strings.Split(head, "/")
	for _, name := range names {
		if volume.ObjectName(name) == "" {
			return t, wrongUsage("%s is neither NAMESPACE/POD[/VOLUME][:PATH] nor the ID of a volume", quoted(text))
		}
	}
	switch len(names) {
	case 2:
		t.namespace, t.pod = names[0], names[1]
	case 3:
		t.namespace, t.pod, t.volume = names[0], names[1], names[2]
	default:
		return t, wrongUsage("%s has more than NAMESPACE/POD/VOLUME; a path comes after a colon", quoted(text))
	}
	return t, nil
}

// parseSelector reads what ls lists: a target, or NAMESPACE. The ID of a volume is longer than any
// name of a namespace.
func parseSelector(text string) (target, error) {
	t, err := parseTarget(text)
	if err == nil && t.id != "" && !t.hasPath && !volume.ID(t.id).FromKubelet() {
		if volume.ObjectName(t.id) == "" {
			return t, wrongUsage("%s is neither a namespace nor the ID of a volume", quoted(text))
		}
		return target{namespace: t.id}, nil
	}
	return t, err
}

// parsePath reads what follows the first colon, and returns it as the API takes it.
func parsePath(text string) (ref string, err error) {
	var path paths.Path
	if encoded, ok := strings.CutPrefix(text, ":"); ok {
		path, err = paths.ParseRef(encoded)
	} else {
		path, err = paths.New(text)
	}
	if err != nil {
		return "", err
	}
	return path.Ref(), nil
}

// pathOf returns what parsePath has read; "/" for the top.
func pathOf(ref string) string {
	path, err := paths.ParseRef(ref)
	if err != nil {
		return ref
	}
	return "/" + path.String()
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
	if v.Namespace == "" || v.Pod == "" || v.Volume == "" {
		return "volume " + v.ID
	}
	return fmt.Sprintf("volume %s of pod %s/%s", v.Volume, v.Namespace, v.Pod)
}

// quoted returns what a user typed for messages.
func quoted(text string) string { return `"` + terminal.Quote(text) + `"` }
