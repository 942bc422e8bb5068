package archived

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/lib/shares"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
)

// Bucket is where archives are. [bucket.Bucket] is one.
type Bucket interface {
	List(ctx context.Context, q bucket.Query) (bucket.Page, error)
	Head(ctx context.Context, key string) (bucket.Object, error)
	Get(ctx context.Context, key string, most int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
	Probe(ctx context.Context, key string) (bucket.Heeds, error)
}

// Namespaces know the namespaces of the cluster.
type Namespaces interface {
	// OfUID returns the name of the namespace with a UID; false if there is none. It never waits.
	OfUID(uid string) (name string, ok bool)
	// Tenancy returns false if no such namespace is known. It never waits.
	Tenancy(namespace string) (volume.Tenancy, bool)
	// Synced reports whether all namespaces are known.
	Synced() bool
}

// Config is what an Archive works with. All fields but Metrics and Log are required.
type Config struct {
	Bucket     Bucket
	Namespaces Namespaces
	Metrics    *gatewaymetrics.Metrics
	Log        logr.Logger
}

const (
	// lookEvery is how often the namespaces in the bucket are looked up.
	lookEvery = time.Minute
	// clusterNamespace is the namespace whose UID is that of the cluster.
	clusterNamespace = "kube-system"
)

// Archive is the archive of a cluster. Its methods may be called from several goroutines.
type Archive struct {
	cfg   Config
	ended sync.WaitGroup
	now   func() time.Time
	// indexes and pieces keep objects in memory.
	indexes, pieces *objects
	// decoding bounds how many indexes are read at once, streaming how many requests for bytes, each of which waits for its turn that long.
	decoding, streaming *shares.Shares
	patience            time.Duration
	found               *recent

	mu sync.Mutex
	// uids are the UIDs of the namespaces in the bucket; nil before the first look. truncated: there are more.
	uids      map[string]bool
	truncated bool
	// expected are those of namespaces whose index was signed since the last look.
	expected map[string]bool
	// away is why the bucket did not answer the last request of its kind, and since when it is not asked.
	away  error
	since time.Time
}

// New returns an Archive that knows no namespaces until Start.
func New(c Config) (*Archive, error) {
	if c.Bucket == nil || c.Namespaces == nil {
		return nil, errors.New("archived: Config.Bucket and Config.Namespaces are required")
	}
	return &Archive{
		cfg: c, now: time.Now, indexes: newObjects(mostIndexBytes, indexShare), pieces: newObjects(mostPieceBytes, mostPieceBytes),
		decoding: shares.New(mostDecoding, mostOfReader, mostWaiting), streaming: shares.New(mostStreaming, mostOfReader, mostWaiting),
		patience: turn, found: newRecent(mostRecent), expected: map[string]bool{},
	}, nil
}

// errNoCluster: the API server has not said what the cluster is.
var errNoCluster = errors.New("the UID of the namespace " + clusterNamespace + ", which names the cluster, is not known yet")

// Cluster returns the UID of the cluster.
func (a *Archive) Cluster() (string, error) {
	if now, ok := a.cfg.Namespaces.Tenancy(clusterNamespace); ok && now.UID != "" {
		return now.UID, nil
	}
	return "", errNoCluster
}

// Start begins to follow which namespaces the bucket has, and to look for what has ended, until ctx ends.
func (a *Archive) Start(ctx context.Context) {
	a.ended.Go(func() { a.follow(ctx) })
	a.ended.Go(func() { a.sweep(ctx) })
}

// Wait returns when what Start has begun has ended.
func (a *Archive) Wait() { a.ended.Wait() }

// ours returns an error for a key that is not one of this cluster.
func (a *Archive) ours(cluster string) error {
	own, err := a.Cluster()
	if err == nil && own != cluster {
		err = fmt.Errorf("%w: it is of another cluster", form.ErrForm)
	}
	return err
}
