package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// These words are for the gateway alone. It asks over a connection that the node has opened.

const (
	// ConnectPath is where a gateway takes the connections of nodes.
	ConnectPath = "/v1/connect"
	// ConnectProtocol is what the node asks to upgrade to: from then on it is an HTTP/2 server, and the
	// gateway its client.
	ConnectProtocol = "katbox-node/1"
	// HeaderReplica tells one replica of the gateway, or of the controller, from others, in the answer to a request to
	// connect: it may have several addresses.
	HeaderReplica = "Katbox-Replica"
	// HeaderForwards is in that answer if the replicas ask one another: then the node needs no connection to each of them.
	HeaderForwards = "Katbox-Forwards"
	// HeaderNode names the node in a request to connect, in the answers of a node, and in what a replica asks another one to
	// ask that node.
	HeaderNode = "Katbox-Node"
	// HeaderVersion is the version of the node's daemon in a request to connect, and that of the gateway
	// in an answer to a user.
	HeaderVersion = "Katbox-Version"
	// HeaderEnds is in a request to connect if the node keeps how pods end: one that does not is told their outcomes alone.
	HeaderEnds = "Katbox-Ends"
	// HeaderLevel is in the answers of a node: what its daemon knows. One without it knows neither holds
	// nor what is gone.
	HeaderLevel = "Katbox-Level"
	// LevelHolds is the HeaderLevel of a daemon that knows these.
	LevelHolds = "2"
	// HeaderUser says on whose behalf the gateway asks, HeaderAuditID which request in the audit log of
	// the API server that is. Both are for the node's log, and encoded by [url.QueryEscape].
	HeaderUser = "Katbox-User"
	// HeaderAuditID: see HeaderUser.
	HeaderAuditID = "Katbox-Audit-Id"
	// SummaryPath streams Summary after Summary, each a line of JSON.
	SummaryPath = "/v1/summary"
	// OwnersPath takes OwnerAnswers.
	OwnersPath = "/v1/owners"
	// OutcomesPath takes Outcomes.
	OutcomesPath = "/v1/outcomes"
	// VolumesPath is where volumes are: all that the gateway asks for else is there, below, at GonePath or at GrepPath.
	VolumesPath = "/v1/volumes"
)

// Owner is the owner of a volume, as the API server reported it while its pod existed.
type Owner struct {
	// Verdict is Confirmed or Denied. A volume has no Owner until the API server was asked.
	Verdict      string `json:"verdict"`
	NamespaceUID string `json:"namespaceUID,omitempty"`
	// Kind, Name and UID are those of the pod's controller.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
	// Job and JobIndex are the pod's batch.kubernetes.io/job-name and .../job-completion-index.
	Job      string `json:"job,omitempty"`
	JobIndex string `json:"jobIndex,omitempty"`
}

// Parse returns the owner in the words of the node. It checks the verdict alone.
func (o Owner) Parse() (volume.Owner, error) {
	for _, v := range []volume.Verdict{volume.Confirmed, volume.Denied} {
		if o.Verdict == v.String() {
			return volume.Owner{
				Verdict: v, NamespaceUID: o.NamespaceUID, Kind: o.Kind, Name: o.Name, UID: o.UID, Job: o.Job, JobIndex: o.JobIndex,
			}, nil
		}
	}
	return volume.Owner{}, volume.Invalid("owner.verdict", fmt.Sprintf("is %q, which is neither Confirmed nor Denied", o.Verdict))
}

// Summary is what a node tells a gateway without being asked.
type Summary struct {
	// Time is the node's clock.
	Time time.Time `json:"time"`
	// Full: Holdings are all that there are. Else they are those that have changed, and one with no
	// volumes is gone.
	Full     bool      `json:"full,omitempty"`
	Holdings []Holding `json:"holdings,omitempty"`
	// Asks are pods whose owner the node wants to know.
	Asks []OwnerAsk `json:"asks,omitempty"`
	// Archive is what waits to be archived; nil if that is what the last line said, or the node archives nothing.
	Archive *ArchiveWaiting `json:"archive,omitempty"`
	// Uploads are objects of the archive that the node wants to upload.
	Uploads []UploadAsk `json:"uploads,omitempty"`
}

// Holding is how many retained volumes of a namespace a node holds. Namespaces of the same name
// count apart if their UIDs differ.
type Holding struct {
	Namespace    string    `json:"namespace,omitempty"`
	NamespaceUID string    `json:"namespaceUID,omitempty"`
	Verdict      string    `json:"verdict,omitempty"`
	Volumes      int       `json:"volumes"`
	Newest       time.Time `json:"newest,omitzero"`
	Oldest       time.Time `json:"oldest,omitzero"`
}

// OwnerAsk asks for the owner of a volume.
type OwnerAsk struct {
	ID        string `json:"id"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	PodUID    string `json:"podUID"`
}

// OwnerAnswers is the body of a POST to OwnersPath.
type OwnerAnswers struct {
	Items []OwnerAnswer `json:"items"`
}

// OwnerAnswer names the owner of a volume.
type OwnerAnswer struct {
	ID     string `json:"id"`
	PodUID string `json:"podUID"`
	Owner  Owner  `json:"owner"`
	// Seal proves to any gateway of the cluster that one has said this, of a pod on this node: the pod is gone when its volumes
	// are archived. At most [MostSeal] letters, digits, hyphens and underscores; an older gateway gives none.
	Seal string `json:"seal,omitempty"`
}

// MostSeal is the longest Seal in bytes.
const MostSeal = 64

// OwnersKept is the answer to a POST to OwnersPath.
type OwnersKept struct {
	// Kept is how many of the owners the node has noted. It does not note those of volumes that it
	// does not know.
	Kept int `json:"kept"`
}

// Outcomes is the body of a POST to OutcomesPath.
type Outcomes struct {
	Items []PodOutcome `json:"items"`
}

// PodOutcome says how a pod ended.
type PodOutcome struct {
	PodUID string `json:"podUID"`
	// Outcome is Succeeded, Failed or Stopped.
	Outcome string `json:"outcome"`
	// Volumes are the names of the pod's inline CSI volumes in its spec, of any driver. Drivers are their
	// drivers, in the same order; an older gateway does not say.
	Volumes []string `json:"volumes"`
	Drivers []string `json:"drivers,omitempty"`
	// End is what is kept of how it ended, as JSON; an older gateway does not say.
	End json.RawMessage `json:"end,omitempty"`
}

// OutcomesTaken is the answer to a POST to OutcomesPath.
type OutcomesTaken struct {
	// Taken is how many of the outcomes the node has taken in. It takes none in while it knows better.
	Taken int `json:"taken"`
}
