package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// Resources repeat what arrays say: where a volume is reached, in which consistency group it is, to which server record
// and at which LUN it is attached. All of that can change on the array, by a failover or by a person. So each
// comparison looks whether it still holds, and writes it anew; a new portal lets one begin at once.

// hasChanged reports whether the resource of a volume repeats what the array does not say any more. What the array leaves
// out of a list has not changed.
func hasChanged(k poolmessages.Content, v *array.Volume) bool {
	return v.Export != "" && k.Export != rules.Hash(v.Export) || v.Group != "" && k.Group != rules.Hash(v.Group)
}

// repeat writes what the array says of a volume into a status.
func repeat(s *v1alpha1.PoolVolumeStatus, v *array.Volume) {
	s.ExportPath, s.GroupID = cmp.Or(v.Export, s.ExportPath), cmp.Or(v.Group, s.GroupID)
}

// refresh lets a PoolVolume say what the volume is, which has changed behind our back.
func (x *comparison) refresh(ctx context.Context, name string, v *array.Volume) error {
	var object v1alpha1.PoolVolume
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || object.Status.ID != v.ID {
		return nil
	}
	base := object.DeepCopy()
	switch s := &object.Status; s.State {
	case v1alpha1.VolumeFailed:
		if rules.IsMissing(s.Message) {
			*s = volumeStatus(*s, v)
		}
	case v1alpha1.VolumeReady:
		if s.Capacity.Value() < v.Size.Bytes() {
			*s = volumeStatus(*s, v)
		}
		repeat(s, v)
	case v1alpha1.VolumeRetained:
		repeat(s, v)
	}
	if equality.Semantic.DeepEqual(base.Status, object.Status) {
		return nil
	}
	return x.patchStatus(ctx, &object, base)
}

// refreshSnapshot does the same for a PoolSnapshot.
func (x *comparison) refreshSnapshot(ctx context.Context, known poolmessages.Content, s *array.Snapshot) error {
	moved := s.Group != "" && known.Group != rules.Hash(s.Group)
	if back := known.Flags.Has(poolmessages.FlagFailed) && s.Usable; !back && !moved {
		return nil
	}
	var object v1alpha1.PoolSnapshot
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: known.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || object.Status.ID != s.ID {
		return nil
	}
	base := object.DeepCopy()
	object.Status.GroupID = cmp.Or(s.Group, object.Status.GroupID)
	if object.Status.State == v1alpha1.SnapshotFailed && rules.IsMissing(object.Status.Message) {
		object.Status.State, object.Status.Message = v1alpha1.SnapshotReady, ""
	}
	if equality.Semantic.DeepEqual(base.Status, object.Status) {
		return nil
	}
	return x.patchStatus(ctx, &object, base)
}

// asksAtOnce is how many attachments over iSCSI a comparison asks the array about, a request for each. The next one goes
// on with those behind them.
const asksAtOnce = 64

// attachmentsOf looks whether attachments still are what their resources say.
func (x *comparison) attachmentsOf(ctx context.Context, attachments []poolmessages.Content) error {
	var there []poolmessages.Content
	for _, a := range attachments {
		if _, listed := x.servers[a.Volume]; listed && a.ID != "" && a.Flags.Has(poolmessages.FlagReady) &&
			!a.Flags.Has(poolmessages.FlagDeleting) {
			there = append(there, a)
		}
	}
	if len(there) == 0 {
		return nil
	}
	records, err := x.serverRecords(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(there, func(a, b poolmessages.Content) int { return cmp.Compare(a.Name, b.Name) })
	asks := x.asked(there)
	for _, a := range there {
		if err := x.attachmentOf(ctx, a, records, asks[a.Name]); err != nil {
			return err
		}
	}
	return nil
}

// serverRecords returns the server records of the array, by ID. The tasks make those anew that are not right any more.
func (x *comparison) serverRecords(ctx context.Context) (map[string]array.Server, error) {
	all, err := x.array.Servers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the server records: %w", err)
	}
	records := make(map[string]array.Server, len(all))
	for _, s := range all {
		records[s.ID] = s
	}
	return records, x.Servers.Compare(ctx, x.pool.Name, records)
}

// asked chooses the attachments that the array is asked about: some behind those of the last comparison.
func (x *comparison) asked(sorted []poolmessages.Content) map[string]bool {
	var block []poolmessages.Content
	for _, a := range sorted {
		if a.Flags.Has(poolmessages.FlagISCSI) {
			block = append(block, a)
		}
	}
	begin, found := slices.BinarySearchFunc(block, x.from, func(a poolmessages.Content, name string) int { return cmp.Compare(a.Name, name) })
	if found {
		begin++
	}
	asks := map[string]bool{}
	for i := range min(asksAtOnce, len(block)) {
		x.from = block[(begin+i)%len(block)].Name
		asks[x.from] = true
	}
	return asks
}

// attachmentOf lets an attachment be made again that the array has changed, and says where its volume is by now.
func (x *comparison) attachmentOf(ctx context.Context, a poolmessages.Content, records map[string]array.Server, ask bool) error {
	switch record, ok := records[a.ID]; {
	case !slices.Contains(x.servers[a.Volume], a.ID):
		return x.attachAgain(ctx, a, "had detached volume "+a.Volume+" from node "+a.NodeName,
			func(on *array.Attachment) bool { return on == nil })
	case ok && !x.appears(record, a.Node):
		return x.attachAgain(ctx, a, "has another address or IQN in "+record.ID+", by which node "+a.NodeName+" had volume "+a.Volume,
			func(on *array.Attachment) bool { return on != nil })
	case ask:
		elsewhere := func(on *array.Attachment) bool {
			return on != nil && (on.LUN != a.LUN || on.Target != "" && on.Target != a.Target)
		}
		if err := x.attachAgain(ctx, a, "has volume "+a.Volume+" at another LUN for node "+a.NodeName, elsewhere); err != nil {
			return err
		}
	}
	now := x.exports[a.Volume]
	if a.Flags.Has(poolmessages.FlagISCSI) {
		now = x.portal
	}
	if now == "" || now == a.Reached {
		return nil
	}
	return x.moveTo(ctx, a, now)
}

// appears reports whether a server record lets a node in, as far as is known how the node appears, and what the record has.
func (x *comparison) appears(record array.Server, as poolmessages.NodeAddress) bool {
	same := func(node, listed string) bool { return node == "" || listed == "" || strings.EqualFold(node, listed) }
	return same(as.Address, record.Address) && same(as.IQN, record.IQN)
}

// moveTo writes into an attachment where its volume is reached by now. The node reads it when it logs in or mounts next.
func (x *comparison) moveTo(ctx context.Context, a poolmessages.Content, now string) error {
	var object v1alpha1.PoolAttachment
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: a.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || object.Status.ServerID != a.ID {
		return nil
	}
	base := object.DeepCopy()
	is := &object.Status.Export
	if a.Flags.Has(poolmessages.FlagISCSI) {
		is = &object.Status.Portal
	}
	was := *is
	if was == now {
		return nil
	}
	*is = now
	if was != "" { // an earlier version wrote no export
		x.Resources.Events.Event(&object, corev1.EventTypeNormal, "Moved",
			fmt.Sprintf("the array of pool %s has volume %s at %s, and had it at %s", x.pool.Name, a.Volume, now, was))
	}
	return x.patchStatus(ctx, &object, base)
}

// attachAgain lets an attachment be made again, if the array still shows what it was listed with: on is nil where the
// volume is not attached.
func (x *comparison) attachAgain(ctx context.Context, a poolmessages.Content, why string, still func(on *array.Attachment) bool) error {
	there, err := x.array.Attachments(ctx, x.byName[a.Volume].ID)
	if errors.Is(err, array.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look where volume %s is attached: %w", a.Volume, err)
	}
	var on *array.Attachment
	if i := slices.IndexFunc(there, func(on array.Attachment) bool { return on.ServerID == a.ID }); i >= 0 {
		on = &there[i]
	}
	if !still(on) {
		return nil
	}
	var object v1alpha1.PoolAttachment
	if err := x.Resources.Get(ctx, client.ObjectKey{Name: a.Name}, &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil || object.Status.ServerID != a.ID || on != nil && rules.LUN(&object) != a.LUN {
		return nil
	}
	base := object.DeepCopy()
	object.Status.State, object.Status.Message = v1alpha1.AttachmentAttaching, "the array "+why
	x.Resources.Events.Event(&object, corev1.EventTypeWarning, "AttachmentLost", fmt.Sprintf("the array of pool %s %s; it is attached again",
		x.pool.Name, why))
	return x.patchStatus(ctx, &object, base)
}
