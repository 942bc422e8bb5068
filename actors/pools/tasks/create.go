package tasks

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// createVolume makes a volume, or goes on where an earlier call has stopped. The resource is there
// before the array is asked for a change, and says which pool it is. A final error means that nothing
// is on the array and the resource is gone again.
func (t *task) createVolume(ctx context.Context, n pools.NewVolume) (pools.Volume, error) {
	v := &v1alpha1.PoolVolume{}
	found, err := t.read(ctx, t.name, v)
	if err != nil {
		return pools.Volume{}, err
	}
	if found {
		if err = t.sameAs(v, n); err != nil {
			return pools.Volume{}, err
		}
		err = t.provision(ctx, v)
	} else {
		var c *claim
		if c, err = t.asking(ctx, n); err != nil {
			return pools.Volume{}, err
		}
		if back, given, err := t.given(ctx, n, c); given {
			return back, err
		}
		err = t.newVolumeIn(ctx, v, n, c)
	}
	if err != nil {
		return pools.Volume{}, err
	}
	return t.describeVolume(v), nil
}

// refusals bounds how many times arrays may refuse a volume for which they should have room.
const refusals = 20

// newVolumeIn makes a volume in a pool that has room. Where the array of one says that it has none after all,
// retained volumes make room there, or another pool takes the volume; where it refuses the volume, or a pool on a node
// cannot be used, another pool.
func (t *task) newVolumeIn(ctx context.Context, v *v1alpha1.PoolVolume, n pools.NewVolume, c *claim) error {
	not := refusedBy{declined: map[string]string{}}
	for tried := 1; ; tried++ {
		pool, err := t.newVolume(ctx, v, n, c, not)
		switch {
		case pool == "" || rules.IsOpen(err) || tried == refusals:
			return err
		case errors.Is(err, array.ErrDeclined), isNotHere(err):
			not.declined[pool] = rules.Shortly(err)
		case errors.Is(err, volume.ErrNoSpace):
			not.full = append(not.full, pool)
		default:
			return err
		}
	}
}

// refusedBy are the pools whose arrays have refused a volume: they are full, or say another reason.
type refusedBy struct {
	full     []string
	declined map[string]string
}

// newVolume chooses a pool, makes the resource, and then the volume. It returns the pool whose array was asked.
func (t *task) newVolume(ctx context.Context, v *v1alpha1.PoolVolume, n pools.NewVolume, c *claim, not refusedBy,
) (asked string, err error) {
	from, err := t.findSource(ctx, n.Source)
	if err != nil {
		return "", err
	}
	size, err := sizeOf(n, from)
	if err != nil {
		return "", err
	}
	ask := poolmessages.ReservePool{
		Volume: t.name, Class: n.Class, Bytes: size.Bytes(), Kind: n.Kind, Near: n.Near, Block: n.Block, Copy: from != nil,
		Protocol: n.Protocol, Options: n.Options, Refused: not.full, Declined: maps.Clone(not.declined),
	}
	if from != nil {
		ask.Pool = from.pool
		if n.Class != "" && n.Class != from.class {
			return "", from.fits(n, n.Class, from.protocol)
		}
	}
	chosen, err := t.Reserve(ctx, ask)
	if err != nil {
		t.Release(t.name, false) // the answer may come late
		return "", err
	}
	made := false
	defer func() { t.Release(t.name, made) }()
	protocol, err := protocolOf(n, chosen, from)
	if err != nil {
		return "", err
	}
	if err := from.fits(n, chosen.Class, protocol); err != nil {
		return "", err
	}
	pool, err := t.UsePool(ctx, chosen.Pool)
	if err != nil {
		return chosen.Pool, elsewhere(n.Kind, err)
	}
	*v = t.wanted(n, chosen, protocol, size)
	v.Spec.FSType = fsTypeOf(n, chosen, protocol, from)
	isFor(v, c)
	// The name has to be free before the resource claims it: later an unmarked volume of this name is
	// ours, whose mark is yet to be written.
	have, err := pool.Array.VolumeNamed(ctx, t.name)
	free := errors.Is(err, array.ErrNotFound)
	switch {
	case free:
	case err != nil:
		return pool.Name, elsewhere(n.Kind, t.arrayError(pool.Name, err, "look for volume "+t.name))
	default:
		if err := t.ours(v, have, marked); err != nil {
			return "", err
		}
	}
	if err := t.create(ctx, v); err != nil {
		return "", err
	}
	err = t.make(ctx, v, pool, !free)
	made = err == nil
	return chosen.Pool, err
}

// notHere is a [volume.ErrNoSpace]: a pool on a node cannot be used now, and nothing was made there.
type notHere struct{ why string }

func (e *notHere) Error() string { return "nothing was made: " + e.why }

func (e *notHere) Is(target error) bool { return target == volume.ErrNoSpace }

func isNotHere(err error) bool {
	_, is := errors.AsType[*notHere](err)
	return is
}

// elsewhere makes an error of a pool in which nothing has begun. One on a node that cannot be used has no room: the
// volume may go to another node, which Kubernetes tries after no other error.
func elsewhere(kind pools.Kind, err error) error {
	if kind == pools.KindLocal && errors.Is(err, volume.ErrUnavailable) {
		return &notHere{volume.OneLine(err)}
	}
	return err
}

// protocolOf returns how nodes reach a new volume.
func protocolOf(n pools.NewVolume, chosen poolmessages.Reservation, from *source) (v1alpha1.Protocol, error) {
	protocol := v1alpha1.Protocol(n.Protocol)
	switch {
	case n.Kind == pools.KindLocal:
		return v1alpha1.Local, nil
	case n.Block && n.Protocol == pools.NFS:
		return "", volume.Invalid("volume_capabilities", "want a block volume, which the protocol nfs cannot be")
	case n.Block:
		return v1alpha1.ISCSI, nil
	case protocol == "" && from != nil:
		protocol = from.protocol
	case protocol == "":
		protocol = v1alpha1.Protocol(chosen.Protocol)
	}
	if protocol == v1alpha1.ISCSI && n.Shared {
		return "", volume.Invalid("volume_capabilities", "want a file system that several nodes write to, which the protocol iscsi cannot be")
	}
	return protocol, nil
}

// wanted is the resource of a new volume.
func (t *task) wanted(n pools.NewVolume, chosen poolmessages.Reservation, protocol v1alpha1.Protocol, size array.Size) v1alpha1.PoolVolume {
	v := v1alpha1.PoolVolume{
		ObjectMeta: metav1.ObjectMeta{Name: t.name, Labels: map[string]string{}},
		Spec: v1alpha1.PoolVolumeSpec{
			ClassName: chosen.Class, PoolName: chosen.Pool, Size: *resource.NewQuantity(size.Bytes(), resource.BinarySI),
			VolumeMode: volumeModeOf(n.Block), Protocol: protocol, Management: v1alpha1.Managed,
			Flags: v1alpha1.VolumeFlags{Compress: chosen.Compress, Dedupe: chosen.Dedupe, Encrypt: chosen.Encrypt},
		},
	}
	rules.SetLabel(&v, v1alpha1.LabelPool, chosen.Pool)
	if n.Name != t.name {
		v.Spec.RequestName = n.Name
	}
	if len(chosen.Extra)+len(n.Options) > 0 {
		v.Spec.Flags.Extra = map[string]string{}
		maps.Copy(v.Spec.Flags.Extra, chosen.Extra)
		maps.Copy(v.Spec.Flags.Extra, n.Options)
	}
	if n.Source != (pools.Source{}) {
		v.Spec.Source = &v1alpha1.VolumeSource{Snapshot: n.Source.Snapshot, Volume: n.Source.Volume}
	}
	if n.Claim != (pools.Claim{}) {
		v.Spec.ClaimRef = &v1alpha1.ClaimRef{Namespace: n.Claim.Namespace, Name: n.Claim.Name}
		rules.SetLabel(&v, v1alpha1.LabelNamespace, n.Claim.Namespace)
	}
	return v
}

func volumeModeOf(block bool) v1alpha1.VolumeMode {
	if block {
		return v1alpha1.Block
	}
	return v1alpha1.Filesystem
}

// fsTypeOf returns the file system that a node makes on a new volume; empty for none. Where volumes are directories they
// have the disk's. A copy has that of its source.
func fsTypeOf(n pools.NewVolume, chosen poolmessages.Reservation, protocol v1alpha1.Protocol, from *source) string {
	switch {
	case n.Block, protocol == v1alpha1.NFS, protocol == v1alpha1.Local && !chosen.Images:
		return ""
	case from != nil && (from.fsType != "" || protocol == v1alpha1.Local): // the node knows its own, where nothing is said
		return from.fsType
	}
	return cmp.Or(n.FSType, pools.DefaultFSType)
}
