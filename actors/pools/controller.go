package pools

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

type (
	// Config is what a Controller works with.
	Config = env.Config
	// Resources is the Kubernetes API.
	Resources = env.Resources
	// Access is how the array of a pool is reached.
	Access = env.Access
	// Metrics count what happens in the pools.
	Metrics = env.Metrics
)

// Controller is the front of the actors: it starts them, asks them, stops them. Its errors are those
// of internal/model/volume and internal/model/pools; one whose outcome is not known is never a final one.
type Controller struct {
	*actors.System
	cancel context.CancelFunc
	// kind is that of the pools that it is for; empty means all.
	kind pools.Kind
}

// OfKind returns the same controller for one kind of pools: what is in others does not exist there.
func (c *Controller) OfKind(kind pools.Kind) *Controller {
	of := *c
	of.kind = kind
	return &of
}

// Start starts the actors. They do nothing before Listed.
func Start(cfg Config) (*Controller, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	system := actors.NewSystem(cfg.Log, cfg.Threads)
	ctx, cancel := context.WithCancel(context.Background())
	e := env.New(ctx, system, cfg)
	if err := system.Start(newOwner(e), cfg.Metrics, nil); err != nil {
		cancel()
		return nil, err
	}
	return &Controller{System: system, cancel: cancel}, nil
}

// Stop lets running operations end, then ends the actors. It is to be called once, after the last call
// was answered. Its error says what did not end before ctx did.
func (c *Controller) Stop(ctx context.Context) error {
	return c.StopAndCancel(ctx, c.cancel)
}

// Seen tells that a watch has reported a resource, which is not changed any more.
func (c *Controller) Seen(kind string, object client.Object) {
	if claim, ok := object.(*metav1.PartialObjectMetadata); ok && kind == poolmessages.PersistentVolumeClaimKind {
		// In lists and watches of metadata the kind of each object is PartialObjectMetadata.
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	}
	c.Root.Send(c.Supervisor(), &poolmessages.Seen{Object: object})
}

// Gone tells that a watch has reported the end of a resource.
func (c *Controller) Gone(kind, name string) {
	c.Root.Send(c.Supervisor(), &poolmessages.Gone{Kind: kind, Name: name})
}

// Listed tells that the watches have reported every resource once. Until then every call is answered
// [volume.ErrUnavailable]; from then on what is unfinished goes on.
func (c *Controller) Listed() { c.Root.Send(c.Supervisor(), &poolmessages.Listed{}) }

// CreateVolume makes a volume, unless there is one of that name already.
func (c *Controller) CreateVolume(ctx context.Context, v pools.NewVolume) (pools.Volume, error) {
	v.Kind = cmp.Or(c.kind, v.Kind)
	return actors.Ask(ctx, c.Root, c.Supervisor(),
		&poolmessages.CreateVolume{Routing: messages.RoutingTo(ctx, rules.KindVolume, pools.VolumeName(v.Name)), New: v})
}

// DeleteVolume deletes a volume. One that does not exist is deleted.
func (c *Controller) DeleteVolume(ctx context.Context, id string) error {
	return c.Change(ctx, &poolmessages.RemoveVolume{Routing: messages.RoutingTo(ctx, rules.KindVolume, id), Name: id, Kind: c.kind})
}

// GrowVolume makes a volume at least as large as required, in bytes, and not larger than the limit.
// One that Katbox has not made grows too: its claim asks for that.
func (c *Controller) GrowVolume(ctx context.Context, id string, required, limit int64) (pools.Volume, error) {
	return actors.Ask(ctx, c.Root, c.Supervisor(),
		&poolmessages.GrowVolume{
			Routing: messages.RoutingTo(ctx, rules.KindVolume, id), Name: id, Kind: c.kind, Required: required, Limit: limit,
		})
}

// Attach attaches a volume to a node.
func (c *Controller) Attach(ctx context.Context, a pools.NewAttachment) (pools.Attachment, error) {
	return actors.Ask(ctx, c.Root, c.Supervisor(),
		&poolmessages.AttachVolume{Routing: messages.RoutingTo(ctx, rules.KindAttachment, pools.AttachmentName(a.Volume, a.Node)), New: a,
			Kind: c.kind})
}

// Detach detaches a volume from a node; from all nodes where none is named. After nil the node cannot
// reach the volume any more.
func (c *Controller) Detach(ctx context.Context, id, node string) error {
	if node != "" {
		return c.Change(ctx, &poolmessages.DetachVolume{
			Routing: messages.RoutingTo(ctx, rules.KindAttachment, pools.AttachmentName(id, node)), Volume: id, Node: node,
		})
	}
	v, err := actors.Ask(ctx, c.Root, c.Supervisor(), &poolmessages.FindVolume{Name: id, Kind: c.kind})
	if errors.Is(err, volume.ErrNotFound) {
		return nil
	}
	failed := []error{err}
	for _, node := range v.Nodes {
		failed = append(failed, c.Detach(ctx, id, node))
	}
	return errors.Join(failed...)
}

// CreateSnapshot takes a snapshot of a volume, unless it has one of that name already.
func (c *Controller) CreateSnapshot(ctx context.Context, name, id string) (pools.Snapshot, error) {
	return actors.Ask(ctx, c.Root, c.Supervisor(),
		&poolmessages.TakeSnapshot{Routing: messages.RoutingTo(ctx, rules.KindSnapshot, pools.SnapshotName(name)), Name: name, Volume: id,
			Kind: c.kind})
}

// DeleteSnapshot deletes a snapshot. One that does not exist is deleted.
func (c *Controller) DeleteSnapshot(ctx context.Context, id string) error {
	return c.Change(ctx, &poolmessages.RemoveSnapshot{Routing: messages.RoutingTo(ctx, rules.KindSnapshot, id), Name: id, Kind: c.kind})
}

// Volume returns a volume, with the nodes that it is attached to or is being attached to.
func (c *Controller) Volume(ctx context.Context, id string) (pools.Volume, error) {
	return actors.Ask(ctx, c.Root, c.Supervisor(), &poolmessages.FindVolume{Name: id, Kind: c.kind})
}

// Volumes returns a page of the volumes, in the order of their IDs, and whether there are more.
func (c *Controller) Volumes(ctx context.Context, page pools.Page) ([]pools.Volume, bool, error) {
	got, err := actors.Ask(ctx, c.Root, c.Supervisor(), &poolmessages.ListVolumes{Kind: c.kind, Page: page})
	return got.Volumes, got.More, err
}

// Snapshots returns a page of the snapshots, in the order of their IDs, and whether there are more.
func (c *Controller) Snapshots(ctx context.Context, which pools.SnapshotSelection, page pools.Page) ([]pools.Snapshot, bool, error) {
	got, err := actors.Ask(ctx, c.Root, c.Supervisor(), &poolmessages.ListSnapshots{Selection: which, Kind: c.kind, Page: page})
	return got.Snapshots, got.More, err
}

// Capacity returns what a class has room for in pools of the kind, on arrays where there is none; the default class's where none is
// named.
func (c *Controller) Capacity(ctx context.Context, want pools.Wanted) (pools.Capacity, error) {
	return actors.Ask(ctx, c.Root, c.Single(poolmessages.ClassesName),
		&poolmessages.ClassCapacity{Class: want.Class, Kind: cmp.Or(c.kind, want.Kind), Near: want.Near, Block: want.Block})
}

// NodePools tells which pools a node has, when its daemon has connected and when they have changed. on asks the
// daemon, and is the same one as long as the connection lasts.
func (c *Controller) NodePools(node, version string, on local.Pools, all []local.Pool) {
	c.Root.Send(c.Supervisor(), &poolmessages.NodePools{Node: node, Version: version, On: on, All: slices.Clone(all)})
}

// NodeAway tells that the connection of a node has ended. Another one of the node may have begun since.
func (c *Controller) NodeAway(node string, on local.Pools) {
	c.Root.Send(c.Supervisor(), &poolmessages.NodeAway{Node: node, On: on})
}
