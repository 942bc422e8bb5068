package resource

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of the resource.
const (
	Group    = "katbox.io"
	Version  = "v1alpha1"
	Kind     = "RetainedVolume"
	ListKind = "RetainedVolumeList"
	// Resource is the resource in a path, and Singular and Short are its other names in kubectl.
	Resource = "retainedvolumes"
	Singular = "retainedvolume"
	Short    = "rv"
	// Files and Log are the subresources.
	Files = "files"
	Log   = "log"
	// AnyVolume stands for the name of a volume where a subresource is about all that are selected. No volume has such a name.
	AnyVolume = "-"
)

// The labels of a volume.
const (
	// LabelJob is the Job that made the pod.
	LabelJob = "batch.kubernetes.io/job-name"
	// LabelOwnerKind is the kind of the pod's controller, if the API server has confirmed it.
	LabelOwnerKind = "katbox.io/owner-kind"
	// LabelForeign is "true" for a volume that does not belong to the namespace as it is now. Others do
	// not have it.
	LabelForeign = "katbox.io/foreign"
)

// GroupVersion is the API group and its version.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// RetainedVolume is the storage of a pod that has ended, or of a claim that was deleted.
type RetainedVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status"`
}

// Spec says whose the volume was, and where it is.
type Spec struct {
	// PodName is empty for a volume whose pod is not known.
	PodName string `json:"podName,omitempty"`
	PodUID  string `json:"podUID,omitempty"`
	// ClaimName is the PersistentVolumeClaim whose volume it was; empty for an inline volume, which has a pod instead.
	ClaimName string `json:"claimName,omitempty"`
	// VolumeName is the volume's name in the pod.
	VolumeName string `json:"volumeName,omitempty"`
	// NodeName is empty for a claim's volume on a remote array. PoolName and ClassName, its PoolClass, are those of such a
	// volume. No reader gets its files there; a new claim gets them back.
	NodeName  string `json:"nodeName"`
	PoolName  string `json:"poolName,omitempty"`
	ClassName string `json:"className,omitempty"`
	VolumeID  string `json:"volumeID"`
	// Owner is the pod's controller; nil if it has none, or if it is not known. That of a claim's volume is the claim.
	Owner *Owner `json:"owner,omitempty"`
	// NamespaceUID is the UID of the namespace that the pod or the claim was in; empty if it is not known.
	NamespaceUID string `json:"namespaceUID,omitempty"`
	// KeepUntil is until when the volume is kept at least because a person has pinned it, KeepReason why;
	// nil and empty if it is not pinned.
	KeepUntil  *metav1.Time `json:"keepUntil,omitempty"`
	KeepReason string       `json:"keepReason,omitempty"`
}

// Owner is the controller of a pod.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
	// JobIndex is the completion index of the pod of an indexed Job.
	JobIndex string `json:"jobIndex,omitempty"`
	// Guessed says that the kind and the name come from the pod's name alone.
	Guessed bool `json:"guessed"`
}

// String returns the owner as a target of kubectl katbox names it: "job/nightly". One with a question mark
// is guessed from the pod's name. That of a claim's volume is the claim: "pvc/data".
func (o Owner) String() string {
	switch {
	case o.Kind == "PersistentVolumeClaim":
		return "pvc/" + o.Name
	case o.Guessed:
		return strings.ToLower(o.Kind) + "/" + o.Name + "?"
	}
	return strings.ToLower(o.Kind) + "/" + o.Name
}

// Status is how the volume is now.
type Status struct {
	// Phase is Retained; Archived for a volume that no node has any more, and of which the archive has a copy; or Gone for one that
	// was deleted.
	Phase string `json:"phase"`
	// Outcome is how the pod ended: Succeeded, Failed or Stopped; empty while that is not known.
	Outcome     string       `json:"outcome,omitempty"`
	PublishedAt *metav1.Time `json:"publishedAt,omitempty"`
	RetainedAt  *metav1.Time `json:"retainedAt,omitempty"`
	// ExpiresAt is when the volume is deleted if the disk pressure stays as it is. MayGoEarlier says
	// that the pressure makes this earlier than the end of the volume's lifespan.
	ExpiresAt    *metav1.Time `json:"expiresAt,omitempty"`
	MayGoEarlier bool         `json:"mayGoEarlier"`
	// ArchivedUntil is until when the archive keeps a copy of what a node has; nil if it has none.
	ArchivedUntil *metav1.Time `json:"archivedUntil,omitempty"`
	// Bytes and Inodes are what the volume takes on the disk; nil while that is not known. Those of a claim's volume are
	// set aside for it.
	Bytes  *int64 `json:"bytes,omitempty"`
	Inodes *int64 `json:"inodes,omitempty"`
	// Hold is what a person has decided; nil without a decision.
	Hold *Hold `json:"hold,omitempty"`
	// Terms are what the volume was promised; nil if these are the defaults of its node.
	Terms *Terms `json:"terms,omitempty"`
	// Gone says when and why a volume was deleted; nil for one that is retained.
	Gone *Gone `json:"gone,omitempty"`
}

// Hold is what a person has decided about how long a volume is kept.
type Hold struct {
	// Kind is Pinned or Released, and Until when it ends.
	Kind  string      `json:"kind"`
	Until metav1.Time `json:"until"`
	// By is who decided, Why the reason that was given.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Terms are what a volume was promised when it was first published. Durations are text: 12h, 3d.
type Terms struct {
	Lifespan          string `json:"lifespan,omitempty"`
	LifespanSucceeded string `json:"lifespanSucceeded,omitempty"`
	// Retain is Always, OnFailure or Never.
	Retain string `json:"retain,omitempty"`
	// LimitBytes and LimitInodes are how much the volume may take; 0 is no limit.
	LimitBytes  int64 `json:"limitBytes,omitempty"`
	LimitInodes int64 `json:"limitInodes,omitempty"`
	// LimitNotEnforced: nothing keeps the volume from taking more.
	LimitNotEnforced bool `json:"limitNotEnforced,omitempty"`
}

// Gone says when and why a volume was deleted.
type Gone struct {
	At metav1.Time `json:"at"`
	// Reason is expired, bytes, inodes, namespace, floor, released, purged or interrupted.
	Reason string `json:"reason"`
	// Promised is how long the volume was to be kept, Kept how long it was: 12h, 3d.
	Promised string `json:"promised"`
	Kept     string `json:"kept"`
	// Early: it went before the end of what it was promised, though no person wanted that.
	Early bool `json:"early"`
	// By is who ended its lifespan, Why the reason that was given.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
}

// RetainedVolumeList is a page of volumes, the newest first.
type RetainedVolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []RetainedVolume `json:"items"`
	// Fleet says which nodes the list comes from.
	Fleet *Fleet `json:"fleet,omitempty"`
}

// Fleet says how many nodes a list comes from, and which are missing.
type Fleet struct {
	// Nodes is how many nodes there are. The archive and the pools on remote arrays are none of them. Asked is how
	// many of them are connected, may have such volumes, and were asked for this page; Answered is how many of those answered.
	// Where more than 1,000 may have such volumes, those are not asked of which all are known to be older.
	Nodes    int `json:"nodes"`
	Asked    int `json:"asked"`
	Answered int `json:"answered"`
	// Missing are nodes whose volumes the list may lack: the first few, and "the archive" or "pools on arrays" if these did
	// not answer. MissingMore is how many there are beside these.
	Missing     []MissingNode `json:"missing,omitempty"`
	MissingMore int           `json:"missingMore"`
}

// MissingNode is a node whose volumes a list may lack.
type MissingNode struct {
	Node string `json:"node"`
	// Since is since when it is not connected; nil if that is not known.
	Since  *metav1.Time `json:"since,omitempty"`
	Reason string       `json:"reason"`
}
