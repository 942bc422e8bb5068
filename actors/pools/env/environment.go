package env

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/actors/pools/servers"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Config is what a Controller works with.
type Config struct {
	Resources Resources
	// Connect makes the client of a pool's array. It does no I/O.
	Connect func(Access) (array.Array, error)
	// Namespace is the controller's: the Secrets with the arrays' tokens are there. CHAPNamespace is
	// the one in which it writes Secrets with what nodes log in with.
	Namespace, CHAPNamespace string
	// Driver is the name of the CSI driver, which PersistentVolumes name; LocalDriver that of the driver for
	// pools on nodes, and may be empty.
	Driver, LocalDriver string
	// Cluster is the UID of the namespace kube-system. It marks our volumes on arrays that several
	// clusters use.
	Cluster string
	// ProbeInterval is how often each array is asked how it is; SyncInterval how often its volumes and
	// snapshots are compared with the resources.
	ProbeInterval, SyncInterval time.Duration
	// Settle is how long after the start an array may still carry out requests of an earlier run.
	Settle  time.Duration
	Metrics Metrics
	// Threads is how many threads the process may have; 0 sets no limit.
	Threads int
	Log     logr.Logger
}

// Access is how the array of a pool is reached. It prints without the token.
type Access struct {
	// Pool is the name of the Pool.
	Pool     string
	Endpoint string
	Token    string
	// CA are certificates in PEM; empty means those of the system.
	CA       []byte
	Insecure bool
	// PoolID is the pool on the array; empty where it has one only.
	PoolID string
	// Timeout of a request; 0 leaves it to the client.
	Timeout time.Duration
	// Disk is where the pool is, if that is on a node; then the fields above are empty.
	Disk poolmessages.DiskAt
}

// String hides the token.
func (a Access) String() string { return a.Pool + " at " + a.Endpoint + a.Disk.Node }

// GoString hides the token.
func (a Access) GoString() string { return a.String() }

// Same reports whether the same client reaches the array.
func (a Access) Same(b Access) bool {
	return a.Endpoint == b.Endpoint && a.Token == b.Token && bytes.Equal(a.CA, b.CA) && a.Insecure == b.Insecure &&
		a.PoolID == b.PoolID && a.Timeout == b.Timeout && a.Disk == b.Disk
}

// Metrics count what happens in the pools.
type Metrics interface {
	actors.Metrics
	// OperationEnded: an operation, such as "create" or "attach", has ended.
	OperationEnded(operation string, took time.Duration, err error)
	// RetainedEnded: a volume is not retained any more, for a reason such as "Expired"; see [pools.End].
	RetainedEnded(reason string)
	// Unclaimed: a look has found this number of volumes with neither a claim nor a PersistentVolume.
	Unclaimed(volumes int)
}

// drivers are the names of all CSI drivers.
func (c Config) drivers() []string {
	if c.LocalDriver == "" {
		return []string{c.Driver}
	}
	return []string{c.Driver, c.LocalDriver}
}

// Check names the first field that is missing.
func (c Config) Check() error {
	for _, field := range []struct {
		name string
		ok   bool
	}{
		{"Resources", c.Resources.Client != nil && c.Resources.Events != nil}, {"Connect", c.Connect != nil},
		{"Namespace", c.Namespace != ""}, {"CHAPNamespace", c.CHAPNamespace != ""}, {"Driver", c.Driver != ""}, {"Cluster", c.Cluster != ""},
		{"ProbeInterval", c.ProbeInterval > 0}, {"SyncInterval", c.SyncInterval > 0}, {"Metrics", c.Metrics != nil},
	} {
		if !field.ok {
			return fmt.Errorf("pools: Config.%s is missing", field.name)
		}
	}
	return nil
}

// Environment is what all operations and actors work with. It does not change.
type Environment struct {
	*actors.System
	Config
	// Servers are the server records of nodes.
	Servers *servers.Records
	// VolumeNamers and SnapshotNamers are the objects of Kubernetes that need volumes and snapshots.
	VolumeNamers, SnapshotNamers *Namers
	// BoundNamers are all PersistentVolumes, by their volumes.
	BoundNamers *Namers
	// UUIDs are those of the pools on nodes, by the names of their Pools.
	UUIDs sync.Map
	// Started is when the controller started.
	Started time.Time
	// Comparisons of arrays with their resources wait for one another.
	Comparisons Turns
	// Context ends when the controller stops: operations give up then.
	Context context.Context
	// Subjects is what the actors of volumes, snapshots and attachments have in common.
	Subjects *actors.Subjects
}

// New returns what the actors of a system work with until ctx ends.
func New(ctx context.Context, system *actors.System, cfg Config) *Environment {
	return &Environment{
		System: system, Config: cfg, Servers: servers.New(), Comparisons: newTurns(), Started: time.Now(), Context: ctx,
		VolumeNamers: newVolumeNamers(cfg.drivers()...), SnapshotNamers: newSnapshotNamers(cfg.drivers()...),
		BoundNamers: newBoundNamers(cfg.drivers()...),
		Subjects: &actors.Subjects{
			System: system, Context: ctx, Longest: LongestOperation, Ended: cfg.Metrics.OperationEnded,
		},
	}
}

// Early reports whether an array may still carry out requests of an earlier run. Until then it is not
// known that what such a run has begun will not come.
func (e *Environment) Early() bool { return time.Since(e.Started) < e.Settle }

// Note tells what a task has made of a resource, before the watch does.
func (e *Environment) Note(object client.Object) {
	e.Root.Send(e.Supervisor(), &poolmessages.Seen{Object: object.DeepCopyObject().(client.Object), ByTask: true})
}

// NoteGone tells that a task has deleted a resource, before the watch does.
func (e *Environment) NoteGone(kind, name string) {
	e.Root.Send(e.Supervisor(), &poolmessages.Gone{Kind: kind, Name: name, ByTask: true})
}

// UsePool returns the pool, to change something on its array. The error is [volume.ErrUnavailable] while
// that cannot be done, and says why.
func (e *Environment) UsePool(ctx context.Context, name string) (poolmessages.UsablePool, error) {
	return actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.UsePool{Routing: messages.RoutingTo(ctx, rules.KindPool, name), Pool: name})
}

// Doubt has the array of a pool asked how it is, because a call of it failed in this way.
func (e *Environment) Doubt(pool string, err error) {
	question := &poolmessages.DoubtPool{Routing: messages.Routing{ID: messages.KeyOf(rules.KindPool, pool)}, Err: err}
	question.Prepare()
	e.Root.Send(e.Supervisor(), question)
}

// Reserve returns the pool that takes a new volume, and keeps room for it there until release.
func (e *Environment) Reserve(ctx context.Context, m poolmessages.ReservePool) (poolmessages.Reservation, error) {
	return actors.Ask(ctx, e.Root, e.Single(poolmessages.ClassesName), &m)
}

// Release gives back what was reserved for a volume, which was made or will not be.
func (e *Environment) Release(name string, made bool) {
	e.Root.Send(e.Single(poolmessages.ClassesName), &poolmessages.ReleasePool{Volume: name, Made: made})
}

// UUIDOf returns the UUID of a pool on a node; empty for another one.
func (e *Environment) UUIDOf(pool string) string {
	if uuid, ok := e.UUIDs.Load(pool); ok {
		return uuid.(string)
	}
	return ""
}

// LongestOperation bounds an operation. It is longer than a few requests that an array takes all its time
// for.
const LongestOperation = 10 * time.Minute
