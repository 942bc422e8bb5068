package pools

import (
	"encoding/json"
	"strings"
	"time"
)

// Comment is what the comment of a volume on an array tells, to people and to a later import.
type Comment struct {
	// Cluster is the UID of the namespace kube-system: several clusters may use one array.
	Cluster string `json:"cluster"`
	// Claim is the PersistentVolumeClaim that the volume was made for, as namespace/name.
	Claim string `json:"pvc,omitempty"`
	// FSType is the file system on an iSCSI volume; empty for one that pods get as a block device.
	FSType string `json:"fs,omitempty"`
	// ClaimUID and NamespaceUID are those of the claim and of its namespace.
	ClaimUID     string `json:"uid,omitempty"`
	NamespaceUID string `json:"nsUID,omitempty"`
	// Retained is set from the deletion of the claim on.
	Retained *Retention `json:"retained,omitempty"`
}

// Retention is how long a volume is kept whose claim is gone.
type Retention struct {
	// Since is when the claim was deleted, Until when the volume goes if there is no pressure before.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// NewComment returns the comment of a volume that a cluster makes for a claim.
func NewComment(cluster string, claim Claim) Comment {
	c := Comment{Cluster: cluster}
	if claim != (Claim{}) {
		c.Claim = claim.Namespace + "/" + claim.Name
	}
	return c
}

// ParseComment reads a comment. Any text that is none of ours is an empty one.
func ParseComment(text string) (c Comment) {
	if json.Unmarshal([]byte(text), &c) != nil {
		return Comment{}
	}
	return c
}

// String returns the text for the array.
func (c Comment) String() string {
	text, _ := json.Marshal(c) // two strings
	return string(text)
}

// For returns the claim; an empty one where there is none, or no names of Kubernetes: others can change
// comments, too.
func (c Comment) For() Claim {
	const longest = 253 // of a claim's name
	namespace, name, _ := strings.Cut(c.Claim, "/")
	if len(namespace) > maxName || len(name) > longest || !subdomain.MatchString(namespace) || !subdomain.MatchString(name) {
		return Claim{}
	}
	return Claim{Namespace: namespace, Name: name}
}
