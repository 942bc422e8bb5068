package fleet

import (
	"context"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
)

// Nodes are the nodes of the cluster, as far as the gateway knows them.
type Nodes interface {
	// Look returns what there is at the moment, with the nodes that may hold volumes of a namespace, and their holdings of it.
	// An empty name selects the nodes that may hold any volume, with all their holdings, or sums: one
	// with no namespace counts the volumes whose namespace is not known, and none else does. A holding
	// of [volume.OtherNamespaces] may count volumes of any namespace.
	Look(ctx context.Context, namespace string) Look
	// LookAll is Look with all nodes that are connected, and holdings that say nothing.
	LookAll(ctx context.Context) Look
	// ByHash returns the nodes whose name has a hash, also those that are not connected.
	ByHash(ctx context.Context, hash uint32) []State
}

// Look is what is known of all nodes at one moment.
type Look struct {
	Held []Held
	// Missing are the nodes that should be connected and are not.
	Missing []Missing
	// Count is how many nodes there are, the missing ones among them. Arrays: there may be pools on arrays, too, which are asked as
	// one more node is.
	Count  int
	Arrays bool
}

// Node is a connected node. Its methods may be called from several goroutines.
type Node interface {
	// Node returns the node's name.
	Node() string
	// List returns a page of the node's retained volumes. The node logs who asks.
	List(ctx context.Context, by Reader, q api.Query) (api.VolumeList, error)
	// Gone returns a page of the volumes that the node has deleted, the last one first.
	Gone(ctx context.Context, by Reader, q api.GoneQuery) (api.GoneList, error)
}

// Held is a connected node and what it says it holds.
type Held struct {
	Node     Node
	Holdings []api.Holding
	// Skip is why the node is not asked at present; empty if it is.
	Skip string
}

// State is a node, connected or not.
type State struct {
	// Node is nil if the node is not connected. Missing then says since when.
	Node    Node
	Missing Missing
}

// Missing is a node whose volumes are not in a list.
type Missing struct {
	Node string
	// Since is since when the node is not connected; zero if that is not known.
	Since  time.Time
	Reason string
}

// The reasons why a node is missing. Nodes may give others.
const (
	NotConnected = "NotConnected"
	// NoAnswer: the node did not answer in time, or the list ended before it was asked.
	NoAnswer = "NoAnswer"
	// Failed: the node answered with an error, or with something else than a list.
	Failed = "Failed"
	// NotListed: the API server has not said what is retained on arrays, or the bucket what is archived.
	NotListed = "NotListed"
)

// Arrays stands for a node where volumes are kept on remote arrays, which no node has. It is the name of no node.
const Arrays = api.TheArrays

// Archived stands for a node where volumes are in the archive. It is the name of no node.
const Archived = api.TheArchive

// Archive has copies of volumes, which outlive their nodes. What it has comes from a bucket, and whose it is, from the key there.
type Archive interface {
	// With returns what may hold volumes of some namespaces. Each is asked as a node is, and answers with volumes that name
	// the node they were on.
	With(Where) []Node
	// Find returns the volume with a name, as it is in the Kubernetes API; ErrNotFound if there is none.
	Find(ctx context.Context, w Where, name string) (api.Volume, error)
	// Search begins a search through volumes that With or Find has returned. It calls tick often.
	Search(by Reader, g api.Grep, tick func() error) (VolumeSearch, error)
	// Missing returns true while it is not known which namespaces the archive has volumes of.
	Missing() (Missing, bool)
}

// Where says in which namespaces of the archive to look.
type Where struct {
	// UID is that of a namespace; empty for none.
	UID string
	// Name is that of namespaces that are deleted, beside the one with the UID; empty for none.
	Name string
	// All: in all namespaces, deleted ones too.
	All bool
}

// Namespaces say what a namespace is now.
type Namespaces interface {
	// Tenancy returns false if no such namespace is known. It never waits.
	Tenancy(namespace string) (volume.Tenancy, bool)
	// Lookup is the same as the API server says it: Tenancy may be out of date.
	Lookup(ctx context.Context, namespace string) (volume.Tenancy, bool, error)
}

// Owners are what the gateway itself has read from the API server.
type Owners interface {
	// Verdict returns whose the volumes of a pod on a node are; false if the gateway does not know.
	Verdict(podUID, node string) (api.Owner, bool)
}

// Reader is who asks.
type Reader struct {
	User, AuditID string
	// Everywhere: the reader may do this in all namespaces. Volumes that belong to no namespace that
	// exists are shown to such readers alone.
	Everywhere bool
}

// Request asks for a page of a list.
type Request struct {
	Reader Reader
	// Namespace is empty for a list across all namespaces, which only a reader with the right to list
	// everywhere may ask for.
	Namespace string
	// Query is what the nodes select by: Pod, PodPrefix, PodUID, Job, OwnerKind and Since. Its other
	// fields are not used.
	Query api.Query
	// Nodes reports whether a node may hold volumes that are selected; nil: all may.
	Nodes func(node string) bool
	// Keep reports whether an entry is in the list; nil: all are. It repeats what Query says of the
	// owner, since nodes are not trusted. It is called from several goroutines.
	Keep func(Entry) bool
	// Selectors are the selectors as the reader wrote them. They bind Continue to the list.
	Selectors string
	// Limit is how many entries the page may hold: 0 is 500, and more than 5,000 are 5,000.
	Limit int
	// Continue is that of the page before.
	Continue string
}

// selects reports whether the request selects by more than the namespace: what nodes say they hold says nothing of that.
func (r Request) selects() bool {
	q := r.Query
	return r.Keep != nil || r.Nodes != nil || q.Pod != "" || q.PodPrefix != "" || q.PodUID != "" || q.Job != "" || q.OwnerKind != "" ||
		!q.Since.IsZero()
}

// Entry is a volume in a list.
type Entry struct {
	// Volume is what its node says. Its Owner is what the gateway knows, if it knows better.
	Volume api.Volume
	// Foreign: the volume does not belong to the namespace whose name it bears, as that is now.
	Foreign bool
	// Gone is what the node remembers of a volume that it has deleted; nil for one that is retained.
	Gone *api.GoneVolume
}

// Page is a page of a list.
type Page struct {
	Entries []Entry
	// Continue asks for the next page; it is empty on the last one. A page may hold fewer entries than
	// its limit, or none, and not be the last.
	Continue string
	// Remaining estimates how many entries follow; nil if that is not known.
	Remaining *int64
	Fleet     Status
	// Warnings are for people: the text of Warning headers, without code and agent.
	Warnings []string
}

// Status says how many nodes a list could ask.
type Status struct {
	// Nodes are those of the cluster. Asked are those that are connected, may hold such volumes, and were asked for this page;
	// Answered those that have answered. The archive and the pools on arrays are among none of them.
	Nodes, Asked, Answered int
	// Missing are those whose volumes are not in this list, or not all, on this page or an earlier one: nodes, and before
	// them the archive and the pools on arrays; at most 20. MissingMore is how many more there are at least.
	Missing     []Missing
	MissingMore int
}
