package pools

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/rules"
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
	// disk is where the pool is, if that is on a node; then the fields above are empty.
	disk poolmessages.DiskAt
}

// String hides the token.
func (a Access) String() string { return a.Pool + " at " + a.Endpoint + a.disk.Node }

// GoString hides the token.
func (a Access) GoString() string { return a.String() }

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

// check names the first field that is missing.
func (c Config) check() error {
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

// environment is what all operations and actors work with. It does not change.
type environment struct {
	*actors.System
	Config
	// servers are the server records of nodes.
	servers *servers
	// volumeNamers and snapshotNamers are the objects of Kubernetes that need volumes and snapshots.
	volumeNamers, snapshotNamers *namers
	// boundNamers are all PersistentVolumes, by their volumes.
	boundNamers *namers
	// uuids are those of the pools on nodes, by the names of their Pools.
	uuids sync.Map
	// started is when the controller started.
	started time.Time
	// comparisons of arrays with their resources wait for one another.
	comparisons turns
	// ctx ends when the controller stops: operations give up then.
	ctx context.Context
	// subjects is what the actors of volumes, snapshots and attachments have in common.
	subjects *actors.Subjects
}

func newEnvironment(ctx context.Context, system *actors.System, cfg Config) *environment {
	return &environment{
		System: system, Config: cfg, servers: newServers(), comparisons: newTurns(), started: time.Now(), ctx: ctx,
		volumeNamers: newVolumeNamers(cfg.drivers()...), snapshotNamers: newSnapshotNamers(cfg.drivers()...),
		boundNamers: newBoundNamers(cfg.drivers()...),
		subjects: &actors.Subjects{
			Log: cfg.Log, Workers: system.Workers, Context: ctx, Longest: longestOperation, Ended: cfg.Metrics.OperationEnded,
		},
	}
}

// early reports whether an array may still carry out requests of an earlier run. Until then it is not
// known that what such a run has begun will not come.
func (e *environment) early() bool { return time.Since(e.started) < e.Settle }

// note tells what a task has made of a resource, before the watch does.
func (e *environment) note(object client.Object) {
	e.Root.Send(e.Supervisor(), &poolmessages.Seen{Object: object.DeepCopyObject().(client.Object), ByTask: true})
}

// noteGone tells that a task has deleted a resource, before the watch does.
func (e *environment) noteGone(kind, name string) {
	e.Root.Send(e.Supervisor(), &poolmessages.Gone{Kind: kind, Name: name, ByTask: true})
}

// pool returns the pool, to change something on its array. The error is [volume.ErrUnavailable] while
// that cannot be done, and says why.
func (e *environment) pool(ctx context.Context, name string) (poolmessages.UsablePool, error) {
	return actors.Ask(ctx, e.Root, e.Supervisor(), &poolmessages.UsePool{Routing: routing(ctx, rules.KindPool, name), Pool: name})
}

// doubt has the array of a pool asked how it is, because a call of it failed in this way.
func (e *environment) doubt(pool string, err error) {
	question := &poolmessages.DoubtPool{Routing: messages.Routing{ID: rules.KeyOf(rules.KindPool, pool)}, Err: err}
	question.Prepare()
	e.Root.Send(e.Supervisor(), question)
}

// reserve returns the pool that takes a new volume, and keeps room for it there until release.
func (e *environment) reserve(ctx context.Context, m poolmessages.ReservePool) (poolmessages.Reservation, error) {
	return actors.Ask(ctx, e.Root, e.Single(poolmessages.ClassesName), &m)
}

// release gives back what was reserved for a volume, which was made or will not be.
func (e *environment) release(name string, made bool) {
	e.Root.Send(e.Single(poolmessages.ClassesName), &poolmessages.ReleasePool{Volume: name, Made: made})
}

// routing addresses a request.
func routing(ctx context.Context, kind, name string) messages.Routing {
	deadline, _ := ctx.Deadline()
	return messages.Routing{ID: rules.KeyOf(kind, name), Deadline: deadline}
}
