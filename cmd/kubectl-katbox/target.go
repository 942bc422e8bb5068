package main

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/resource"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

// targetNotes end the usage of each verb that takes a target.
const targetNotes = `TARGET is the name of a pod (POD or pod/POD), a Job (job/JOB), another owner of pods as list shows it (workflow/NAME,
raycluster/NAME, statefulset/NAME), a deleted claim (pvc/CLAIM), or a retained volume (POD.xxxxxxxxxxxx or
CLAIM.xxxxxxxxxxxx, as list shows it). If it matches several volumes, --last takes the newest,
--volume NAME the one with this name in the pod, and --selector those with a label.
PATH begins at the top of the volume. If there is one more colon before it, it is percent-encoded: POD::out/a%0Ab.`

// The fields and the label that volumes are found by.
const (
	fieldName = "metadata.name"
	fieldPod  = "spec.podName"
	// fieldPodUID tells pods with the same name apart.
	fieldPodUID = "spec.podUID"
	// fieldClaim is that of volumes that had a claim, and no pod of their own.
	fieldClaim = "spec.claimName"
	fieldNode  = "spec.nodeName"
	// fieldOwner is what made the pod, as the column OWNER has it.
	fieldOwner = "spec.owner"
	// fieldPhase is Gone for volumes that were deleted.
	fieldPhase = "status.phase"
)

// target is what the user names: volumes, and perhaps a path in them. One of its names is set.
type target struct {
	// volume is the name of a retained volume, pod, job and claim those of whose volumes are meant. owner is KIND/NAME of
	// another controller of pods.
	volume, pod, job, claim, owner string
	// hasPath says that a colon came. path is the path behind it, as the API takes it.
	hasPath bool
	path    string
}

// parseTarget reads [KIND/]NAME[:PATH].
func parseTarget(text string) (target, error) {
	head, path, hasPath, err := verbs.CutTarget(text)
	t := target{hasPath: hasPath, path: path}
	if err != nil {
		return t, err
	}
	kind, name, hasKind := strings.Cut(head, "/")
	if !hasKind {
		name = head
	}
	if !objectName(name) {
		return t, verbs.WrongUsage("%s is not a target: give POD, pod/POD, job/JOB, KIND/NAME of another owner, pvc/CLAIM, or the name of a "+
			"retained volume%s", verbs.Quoted(text), hintOf(head))
	}
	if !hasKind {
		if _, _, _, _, err := resource.ParseName(name); err == nil {
			t.volume = name
		} else {
			t.pod = name
		}
		return t, nil
	}
	switch kind = strings.ToLower(kind); kind {
	case "pod", "pods", "po":
		t.pod = name
	case "job", "jobs", "job.batch", "jobs.batch":
		t.job = name
	case "pvc", "persistentvolumeclaim", "persistentvolumeclaims":
		t.claim = name
	case resource.Short, resource.Singular, resource.Resource,
		resource.Singular + "." + resource.Group, resource.Resource + "." + resource.Group:
		t.volume = name
	default:
		kind, _, _ = strings.Cut(kind, ".") // its group
		if !objectName(kind) {
			return t, verbs.WrongUsage("%s: %s is no kind of an object", verbs.Quoted(text), verbs.Quoted(kind))
		}
		t.owner = kind + "/" + name
	}
	return t, nil
}

// wholeTarget reads a target without a path. done is what is done with its volume: "deleted".
func wholeTarget(text, done string) (target, error) {
	t, err := parseTarget(text)
	if err == nil && t.hasPath {
		err = verbs.WrongUsage("%s is a path: whole volumes are %s", verbs.Quoted(text), done)
	}
	return t, err
}

// objectName reports whether an object of Kubernetes may have a name.
func objectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// hintOf says what is wrong with a target of another form.
func hintOf(head string) string {
	if strings.Count(head, "/") > 1 {
		return "; a path comes after a colon, and the namespace is given with -n"
	}
	return ""
}

// String returns the target as a user types it, without the path.
func (t target) String() string {
	switch {
	case t.job != "":
		return "job/" + t.job
	case t.pod != "":
		return "pod/" + t.pod
	case t.claim != "":
		return "pvc/" + t.claim
	case t.owner != "":
		return t.owner
	}
	return t.volume
}

// query returns what the server selects: the volumes of the target that also have the labels of
// selector.
func (t target) query(namespace, selector string) cluster.Query {
	q := cluster.Query{Namespace: namespace, LabelSelector: selector}
	switch {
	case t.job != "":
		q.LabelSelector = and(labels.Set{resource.LabelJob: t.job}.String(), selector)
	case t.pod != "":
		q.FieldSelector = equals(fieldPod, t.pod)
	case t.claim != "":
		q.FieldSelector = equals(fieldClaim, t.claim)
	case t.owner != "":
		q.FieldSelector = equals(fieldOwner, t.owner)
	case t.volume != "":
		q.FieldSelector = equals(fieldName, t.volume)
	}
	return q
}

// equals returns a field selector.
func equals(field, value string) string { return fields.OneTermEqualSelector(field, value).String() }

// and returns a selector of what both select.
func and(a, b string) string { return strings.Trim(a+","+b, ",") }
