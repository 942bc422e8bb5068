package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/volume"
)

// Nodes are the nodes of the cluster, as far as the gateway knows them.
type Nodes interface {
	// With returns the connected nodes that hold volumes of a namespace, with their holdings of it.
	// An empty name selects the nodes that hold any volume, with all their holdings.
	With(namespace string) []Held
	// ByHash returns the nodes whose name has a hash, also those that are not connected.
	ByHash(hash uint32) []State
	// Missing returns the nodes that ought to be connected and are not.
	Missing() []Missing
	// Count returns how many nodes there are, the missing ones among them.
	Count() int
}

// Node is a connected node. Its methods may be called from several goroutines.
type Node interface {
	// Node returns the node's name.
	Node() string
	// List returns a page of the node's retained volumes. The node logs who asks.
	List(ctx context.Context, by Reader, q api.Query) (api.VolumeList, error)
}

// Held is a connected node and what it says it holds.
type Held struct {
	Node     Node
	Holdings []api.Holding
	// Skip is why the node is not asked at present: it has failed several times. Empty: it is asked.
	Skip string
}

// State is a node, connected or not.
type State struct {
	// Node is nil if the node is not connected, or not asked at present.
	Node Node
	// Missing says so.
	Missing Missing
}

// Missing is a node whose volumes are not in a list.
type Missing struct {
	Node string
	// Since is since when the node is not connected; zero if that is not known.
	Since  time.Time
	Reason string
}

// The reasons why a node is missing. A list of nodes may give others.
const (
	NotConnected = "NotConnected"
	// TimedOut: the node did not answer in time, or the list ended before it was asked.
	TimedOut = "Timeout"
	// Failed: the node answered with an error.
	Failed = "Failed"
)

// Namespaces say what a namespace is now.
type Namespaces interface {
	// Tenancy returns false if there is no such namespace.
	Tenancy(namespace string) (volume.Tenancy, bool)
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
	// Keep reports whether an entry that the Query selects is in the list; nil: all are. It is called
	// from several goroutines.
	Keep func(Entry) bool
	// Selectors are the selectors as the reader wrote them. They bind Continue to the list.
	Selectors string
	// Limit is how many entries the page may hold: 0 is 500, and more than 5,000 are 5,000.
	Limit int
	// Continue is that of the page before.
	Continue string
}

// Entry is a volume in a list.
type Entry struct {
	// Volume is what its node says. Its Owner is what the gateway knows, if it knows better.
	Volume api.Volume
	// Foreign: the volume does not belong to the namespace whose name it bears, as that is now.
	Foreign bool
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
	// Nodes are those of the cluster, Asked those that may hold such volumes and are connected, and
	// Answered those that have answered whenever they were asked for this page.
	Nodes, Asked, Answered int
	// Missing are nodes whose volumes are not in this list, or not all, on this page or an earlier
	// one: at most 20. MissingMore is how many more there are.
	Missing     []Missing
	MissingMore int
}

// Lookup asks for one volume by its name.
type Lookup struct {
	Reader    Reader
	Namespace string
	// NodeHash is the hash of the node's name.
	NodeHash uint32
	// Pod is the pod's name. If Truncated, it is only the beginning. It is empty if the name of the
	// volume does not say.
	Pod       string
	Truncated bool
	// Match reports whether this is the volume. It is called from several goroutines.
	Match func(api.Volume) bool
}

// Found is a volume, and the node that has it.
type Found struct {
	Entry
	Node Node
}

// The errors of List and Find, beside a [*NotConnectedError].
var (
	// ErrContinue: the Continue of the request is not one that this list has given.
	ErrContinue = errors.New("this \"continue\" does not belong to this list; begin the list anew")
	// ErrExpired: the Continue of the request is older than 15 minutes.
	ErrExpired = errors.New("this \"continue\" is older than 15 minutes; begin the list anew")
	// ErrSilent: nodes are connected, and those that were asked did not answer in time.
	ErrSilent = errors.New("no answer")
	// ErrNotFound: there is no such volume, or none that the reader may see.
	ErrNotFound = errors.New("not found")
)

// NotConnectedError says that the nodes which could answer are not connected.
type NotConnectedError struct {
	// Missing are at least one of them.
	Missing []Missing
}

// Error names the first node, and since when it is missing.
func (e *NotConnectedError) Error() string {
	m := e.Missing[0]
	text := fmt.Sprintf("node %s is not connected to this gateway", m.Node)
	if !m.Since.IsZero() {
		text += " since " + m.Since.UTC().Format(time.RFC3339)
	}
	if more := len(e.Missing) - 1; more > 0 {
		text += fmt.Sprintf(", nor are %d more", more)
	}
	return text
}

// Config is what a Fleet needs.
type Config struct {
	Nodes      Nodes
	Namespaces Namespaces
	Owners     Owners
	// Key seals what Continue says, so that nobody can make one up. It has 32 bytes, and is the same
	// in all replicas: the next page may come from another one.
	Key []byte
	// Namespace is the gateway's own. Volumes whose namespace is not known are listed in it.
	Namespace string
	Log       logr.Logger
	// Dropped counts entries of nodes that were left out because they cannot be true; nil: nobody
	// counts them.
	Dropped func(node string, entries int)
}

func (c Config) check() error {
	switch {
	case c.Nodes == nil:
		return errors.New("fleet: Config.Nodes is missing")
	case c.Namespaces == nil:
		return errors.New("fleet: Config.Namespaces is missing")
	case c.Owners == nil:
		return errors.New("fleet: Config.Owners is missing")
	case c.Namespace == "":
		return errors.New("fleet: Config.Namespace is missing")
	case len(c.Key) != KeySize:
		return fmt.Errorf("fleet: Config.Key has %d bytes, and needs %d", len(c.Key), KeySize)
	}
	return nil
}

// KeySize is how many bytes Config.Key has.
const KeySize = 32

// Fleet lists and finds retained volumes. Its methods may be called from several goroutines.
type Fleet struct {
	Config
}

// New returns a Fleet.
func New(c Config) (*Fleet, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Fleet{Config: c}, nil
}

// List returns a page of the retained volumes, the newest first. The errors to expect are
// ErrContinue, ErrExpired, ErrSilent and NotConnectedError.
func (f *Fleet) List(ctx context.Context, r Request) (Page, error) {
	return Page{}, ctx.Err()
}

// Find returns the volume that has a name. The errors to expect are ErrNotFound, ErrSilent and
// NotConnectedError.
func (f *Fleet) Find(ctx context.Context, l Lookup) (Found, error) {
	return Found{}, ErrNotFound
}
