package trust

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	lru "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/katbox/katbox/internal/model/volume"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// PodEvents is the annotation of a namespace that says "false" if there are to be no events on its pods.
const PodEvents = "katbox.io/pod-events"

const (
	// clocksDiffer is by how much a node's clock may be ahead of the API server's: a volume that
	// seems to have been published so shortly after its namespace was made may belong to an earlier
	// one.
	clocksDiffer = 10 * time.Minute
	// keepFound and keepMissing are how long an answer to a Lookup is used, counted from when the
	// question was put; mostLookups bounds their number. From the request to delete a namespace
	// Kubernetes takes 5 s at least, so none of that name can have been made again meanwhile.
	keepFound   = 5 * time.Second
	keepMissing = 2 * time.Second
	mostLookups = 1024
	// noEvents is the value of PodEvents that has a meaning.
	noEvents = "false"
	// lookupLimit bounds one question.
	lookupLimit = 4 * time.Second
)

// NamespacesConfig is what Namespaces works with. Both fields are required.
type NamespacesConfig struct {
	Client metadata.Interface
	Log    logr.Logger
}

func (c NamespacesConfig) check() error {
	switch {
	case c.Client == nil:
		return errors.New("trust: NamespacesConfig.Client is missing")
	case c.Log.GetSink() == nil:
		return errors.New("trust: NamespacesConfig.Log is missing")
	}
	return nil
}

// Namespaces knows the cluster's namespaces. Its methods may be called from several goroutines.
type Namespaces struct {
	cfg      NamespacesConfig
	informer cache.SharedIndexInformer
	// looked keeps answers to Lookup, and asking shares those that are on their way.
	looked *lru.LRUExpireCache
	asking flights[string, found]
	ended  sync.WaitGroup
}

// found is the answer about one namespace.
type found struct {
	tenancy volume.Tenancy
	exists  bool
}

// NewNamespaces returns a Namespaces that knows none until Start.
func NewNamespaces(cfg NamespacesConfig) (*Namespaces, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	informer := metadatainformer.NewFilteredMetadataInformer(cfg.Client, namespaces, metav1.NamespaceAll, 0,
		cache.Indexers{byUID: uidOf}, nil).Informer()
	if err := informer.SetTransform(keepIdentity); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(logErrors(cfg.Log, "namespaces")); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return &Namespaces{cfg: cfg, informer: informer, looked: lru.NewLRUExpireCache(mostLookups)}, nil
}

// keepIdentity drops what is not read: the labels and annotations of 10,000 namespaces are
// megabytes.
func keepIdentity(object any) (any, error) {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name:              namespace.Name,
		UID:               namespace.UID,
		CreationTimestamp: namespace.CreationTimestamp,
		ResourceVersion:   namespace.ResourceVersion,
	}}
	if namespace.Annotations[PodEvents] == noEvents {
		kept.Annotations = map[string]string{PodEvents: noEvents}
	}
	return kept, nil
}

// Start begins to watch the namespaces, until ctx ends. It does not wait for them.
func (n *Namespaces) Start(ctx context.Context) {
	n.ended.Go(func() { n.informer.RunWithContext(ctx) })
}

// Wait returns when all has ended that Start has begun.
func (n *Namespaces) Wait() {
	n.ended.Wait()
}

// Synced reports whether all namespaces are known that there were at the start.
func (n *Namespaces) Synced() bool {
	return n.informer.HasSynced()
}

// Tenancy returns the namespace from memory, and false if there is none of that name. It never
// waits, so a list may ask for each volume.
func (n *Namespaces) Tenancy(namespace string) (volume.Tenancy, bool) {
	if object, exists, err := n.informer.GetStore().GetByKey(namespace); err == nil && exists {
		if known, ok := object.(*metav1.PartialObjectMetadata); ok {
			return tenancyOf(known), true
		}
	}
	f, _ := n.kept(namespace)
	return f.tenancy, f.exists
}

// byUID is the index of namespaces by their UID.
const byUID = "uid"

func uidOf(object any) ([]string, error) {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, nil
	}
	return []string{string(namespace.UID)}, nil
}

// OfUID returns the name of the namespace with a UID from memory, and false if there is none. It never waits.
func (n *Namespaces) OfUID(uid string) (name string, ok bool) {
	objects, err := n.informer.GetIndexer().ByIndex(byUID, uid)
	if err != nil || len(objects) == 0 {
		return "", false
	}
	known, ok := objects[0].(*metav1.PartialObjectMetadata)
	if !ok {
		return "", false
	}
	return known.Name, true
}

// NoPodEvents reports whether a namespace has the annotation PodEvents with the value "false", by what is
// in memory. It never waits.
func (n *Namespaces) NoPodEvents(namespace string) bool {
	object, exists, err := n.informer.GetStore().GetByKey(namespace)
	if err != nil || !exists {
		return false
	}
	known, ok := object.(*metav1.PartialObjectMetadata)
	return ok && known.Annotations[PodEvents] == noEvents
}

// kept returns the answer to a Lookup not long ago, and false if there is none.
func (n *Namespaces) kept(namespace string) (found, bool) {
	if kept, ok := n.looked.Get(namespace); ok {
		return kept.(found), true
	}
	return found{}, false
}

// Lookup asks the API server for a namespace. What a reader may see hangs on the answer, and memory may
// be out of date: a watch that is interrupted says nothing of a namespace that was deleted and made
// again. An answer is at most 5 s old. An error, which wraps ErrUnavailable or is that of ctx, says that
// there is none.
func (n *Namespaces) Lookup(ctx context.Context, namespace string) (volume.Tenancy, bool, error) {
	if f, ok := n.kept(namespace); ok {
		return f.tenancy, f.exists, nil
	}
	// The client would follow a name such as ".." to another resource.
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return volume.Tenancy{}, false, nil
	}
	f, err := n.asking.do(ctx, namespace, lookupLimit, func(ctx context.Context) (found, error) {
		return n.look(ctx, namespace)
	})
	return f.tenancy, f.exists, err
}

// look asks the API server for a namespace.
func (n *Namespaces) look(ctx context.Context, namespace string) (found, error) {
	asked := time.Now()
	object, err := n.cfg.Client.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		n.keep(namespace, found{}, keepMissing-time.Since(asked))
		return found{}, nil
	case err != nil:
		return found{}, fmt.Errorf("%w: asked for namespace %s: %w", ErrUnavailable, namespace, err)
	}
	f := found{tenancyOf(object), true}
	// One that is being deleted may be another at any moment.
	if object.DeletionTimestamp == nil {
		n.keep(namespace, f, keepFound-time.Since(asked))
	}
	return f, nil
}

// keep keeps an answer for a while.
func (n *Namespaces) keep(namespace string, f found, left time.Duration) {
	if left > 0 {
		n.looked.Add(namespace, f, left)
	}
}

// tenancyOf returns what volumes are compared with.
func tenancyOf(namespace *metav1.PartialObjectMetadata) volume.Tenancy {
	return volume.Tenancy{UID: string(namespace.UID), Since: namespace.CreationTimestamp.Add(clocksDiffer)}
}
