package api

import "time"

// Volume is one volume of a node, as JSON.
type Volume struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	PodUID    string `json:"podUID"`
	// Claim is the name of the deleted PersistentVolumeClaim whose volume it was. Such a volume has no pod, nor a name in
	// one, and is kept in a pool on the node's disks: nothing but its files can be asked for. One with Array is kept there,
	// and nothing can be asked for.
	Claim          string `json:"claim,omitempty"`
	Volume         string `json:"volume,omitempty"` // its name in the pod's spec
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Owner is absent until the API server was asked for it.
	Owner *Owner `json:"owner,omitempty"`
	Node  string `json:"node,omitempty"`
	// Phase is one of Publishing, Published, Unpublishing, Retained, Deleting. Lists of retained
	// volumes hold Retained alone.
	Phase       string     `json:"phase"`
	PublishedAt *time.Time `json:"publishedAt,omitempty"`
	RetainedAt  *time.Time `json:"retainedAt,omitempty"`
	// ExpiresAt is when the volume goes if the disk pressure stays as it is. MayGoEarlier says that
	// the pressure makes this earlier than the end of its lifespan.
	ExpiresAt    *time.Time `json:"expiresAt,omitempty"`
	MayGoEarlier bool       `json:"mayGoEarlier,omitempty"`
	// ArchivedUntil is until when the archive keeps a copy; absent if it has none.
	ArchivedUntil *time.Time `json:"archivedUntil,omitempty"`
	// Bytes and Inodes are what the volume takes on the disk; absent while that is not known. Those of a claim's volume
	// are set aside for it.
	Bytes  *int64 `json:"bytes,omitempty"`
	Inodes *int64 `json:"inodes,omitempty"`
	// Outcome is how the pod ended: Succeeded, Failed or Stopped; empty while that is not known.
	Outcome string `json:"outcome,omitempty"`
	// Hold is what a person decided about the retained volume; absent without a decision.
	Hold *Hold `json:"hold,omitempty"`
	// Terms are what the volume was promised; absent if these are the daemon's defaults.
	Terms *Terms `json:"terms,omitempty"`
	// Array is where a claim's volume is kept that no node has. The gateway alone knows it: a node cannot say so.
	Array *Array `json:"-"`
	// Archived is the key of the index of a volume whose Phase is [PhaseArchived]. The gateway alone knows it.
	Archived string `json:"-"`
}

// Array says what is known of a volume that is kept on a remote array.
type Array struct {
	// Pool is where it is, and Class the PoolClass that it is of.
	Pool, Class string
	// Block: pods get it as a block device.
	Block bool
	// Size is the least size of a claim that gets it back, such as 10Gi.
	Size string
}

// VolumeList is a page of retained volumes, the newest first.
type VolumeList struct {
	Items []Volume `json:"items"`
	// Continue asks for the next page, as the parameter "before"; it is empty on the last one. A page
	// may be shorter than its limit, or empty, and not be the last.
	Continue string `json:"continue,omitempty"`
}

// EntryType is what a name in a volume is.
type EntryType string

// The types of entries. A mount is a directory or a file that something is mounted on: nothing is
// known of what it hides.
const (
	File      EntryType = "file"
	Directory EntryType = "directory"
	Symlink   EntryType = "symlink"
	FIFO      EntryType = "fifo"
	Socket    EntryType = "socket"
	Block     EntryType = "block"
	Char      EntryType = "char"
	Mount     EntryType = "mount"
)

// Entry is one name in a volume.
type Entry struct {
	// Name is for people: bytes that are not UTF-8 are replaced. Ref is the whole path from the top
	// of the volume, percent-encoded, which a request takes back as its path.
	Name string    `json:"name"`
	Ref  string    `json:"ref"`
	Type EntryType `json:"type"`
	// Target is where a symbolic link points to, for people. Nothing follows it.
	Target string `json:"target,omitempty"`
	Size   int64  `json:"size"`
	// Allocated is what the entry takes on the disk, in bytes.
	Allocated int64 `json:"allocated"`
	// Mode is octal, with the bits of setuid, setgid and sticky: "0640". It and ModTime are absent for a
	// mount.
	Mode    string    `json:"mode,omitempty"`
	UID     uint32    `json:"uid"`
	GID     uint32    `json:"gid"`
	ModTime time.Time `json:"mtime,omitzero"`
	Links   uint64    `json:"nlink"`
}

// FileList is a page of a directory, or of a tree, sorted by the bytes of the names unless it is Unsorted.
type FileList struct {
	// Path is that of the request, percent-encoded.
	Path    string  `json:"path"`
	Entries []Entry `json:"entries"`
	// Continue asks for the next page; it is empty on the last one. A page may be shorter than its
	// limit and not be the last.
	Continue string `json:"continue,omitempty"`
	// Truncated: directories below the depth of the request were not entered.
	Truncated bool `json:"truncated,omitempty"`
	// Unsorted: the page has names of a directory with more than 20,000, which come in its own order.
	Unsorted bool `json:"unsorted,omitempty"`
}

// Usage is what occupies the node's disk.
type Usage struct {
	Node string `json:"node,omitempty"`
	// Total and Free are those of the working directory's file system.
	TotalBytes  int64 `json:"totalBytes"`
	FreeBytes   int64 `json:"freeBytes"`
	TotalInodes int64 `json:"totalInodes,omitempty"`
	FreeInodes  int64 `json:"freeInodes,omitempty"`
	// Pods hold what each pod's volumes take, the largest first: at most 1,000.
	Pods []PodUsage `json:"pods"`
	// Others is the sum of the pods that Pods leaves out, and OtherPods how many they are.
	Others    *PodUsage `json:"others,omitempty"`
	OtherPods int       `json:"otherPods,omitempty"`
	// Namespaces hold the sums of all pods of each namespace, the largest first: at most 1,000, and
	// then the sum of the others, which has no name.
	Namespaces []PodUsage `json:"namespaces"`
}

// PodUsage is what the volumes of one pod take, or those of all pods of a namespace.
type PodUsage struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	PodUID    string `json:"podUID,omitempty"`
	// Live and Retained count its volumes; the sizes are their sums.
	Live          int   `json:"live"`
	LiveBytes     int64 `json:"liveBytes"`
	Retained      int   `json:"retained"`
	RetainedBytes int64 `json:"retainedBytes"`
	Inodes        int64 `json:"inodes"`
	// Unmeasured counts volumes whose size is not known; they are missing from the sums.
	Unmeasured int `json:"unmeasured,omitempty"`
}

// Status is the body of every answer that is an error. Its fields are those of Kubernetes'
// metav1.Status.
type Status struct {
	Kind    string `json:"kind"`   // "Status"
	Status  string `json:"status"` // "Failure"
	Code    int    `json:"code"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Details hold the cause of a bad request.
	Details *Details `json:"details,omitempty"`
}

// Details hold why a request is bad.
type Details struct {
	Causes []Cause `json:"causes,omitempty"`
}

// Cause is one reason why a request is bad.
type Cause struct {
	Reason  CauseReason `json:"reason"`
	Message string      `json:"message"`
	Field   string      `json:"field,omitempty"`
}

// Reason is Kubernetes' word for the kind of an error.
type Reason string

// The reasons that a node gives, each with its HTTP code.
const (
	BadRequest         Reason = "BadRequest"          // 400
	NotFound           Reason = "NotFound"            // 404
	MethodNotAllowed   Reason = "MethodNotAllowed"    // 405
	Conflict           Reason = "Conflict"            // 409: published again, not retained now
	Expired            Reason = "Expired"             // 410: the volume went during the request
	RangeNotValid      Reason = "RangeNotSatisfiable" // 416
	TooManyRequests    Reason = "TooManyRequests"     // 429
	InternalError      Reason = "InternalError"       // 500
	ServiceUnavailable Reason = "ServiceUnavailable"  // 503: starting or stopping
	Timeout            Reason = "Timeout"             // 504
)

// CauseReason says what is wrong with a request.
type CauseReason string

// The causes of a bad request.
const (
	NotRegularFile CauseReason = "NotRegularFile"
	IsDirectory    CauseReason = "IsDirectory"
	NotDirectory   CauseReason = "NotDirectory"
	IsSymlink      CauseReason = "Symlink"
	CrossesMount   CauseReason = "CrossesMount"
	BadPath        CauseReason = "BadPath"
	BadContinue    CauseReason = "BadContinue"
	BadParameter   CauseReason = "BadParameter"
)
