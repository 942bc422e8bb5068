package pools

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/internal/array"
	"github.com/katbox/katbox/internal/pools"
	"github.com/katbox/katbox/internal/pools/v1alpha1"
	"github.com/katbox/katbox/internal/volume"
	"github.com/katbox/katbox/messages"
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
		err = t.newVolume(ctx, v, n)
	}
	if err != nil {
		return pools.Volume{}, err
	}
	return describeVolume(v), nil
}

// newVolume chooses a pool, makes the resource, and then the volume.
func (t *task) newVolume(ctx context.Context, v *v1alpha1.PoolVolume, n pools.NewVolume) (err error) {
	from, err := t.findSource(ctx, n.Source)
	if err != nil {
		return err
	}
	size, err := sizeOf(n, from)
	if err != nil {
		return err
	}
	ask := messages.ReservePool{Volume: t.name, Class: n.Class, Bytes: size.Bytes()}
	if from != nil {
		ask.Pool = from.pool
		if n.Class != "" && n.Class != from.class {
			return from.fits(n, n.Class, from.protocol)
		}
	}
	chosen, err := t.reserve(ctx, ask)
	if err != nil {
		return err
	}
	made := false
	defer func() { t.release(t.name, made) }()
	protocol, err := protocolOf(n, chosen, from)
	if err != nil {
		return err
	}
	if err := from.fits(n, chosen.Class, protocol); err != nil {
		return err
	}
	pool, err := t.pool(ctx, chosen.Pool)
	if err != nil {
		return err
	}
	*v = t.wanted(n, chosen, protocol, size)
	// The name has to be free before the resource claims it: later an unmarked volume of this name is
	// ours, whose mark is yet to be written.
	have, err := pool.Array.VolumeNamed(ctx, t.name)
	free := errors.Is(err, array.ErrNotFound)
	switch {
	case free:
	case err != nil:
		return t.arrayError(pool.Name, err, "look for volume "+t.name)
	default:
		if err := t.ours(v, have, marked); err != nil {
			return err
		}
	}
	if err := t.create(ctx, v); err != nil {
		return err
	}
	err = t.make(ctx, v, pool, !free)
	made = err == nil
	return err
}

// sizeOf returns the size of a new volume: whole GiB within the bounds, and not less than the source.
func sizeOf(n pools.NewVolume, from *source) (array.GiB, error) {
	size := max(array.InGiB(n.Required), 1)
	if from != nil {
		size = max(size, from.size)
	}
	return size, within(size, n.Limit)
}

// within refuses a size above a limit in bytes.
func within(size array.GiB, limit int64) error {
	if limit > 0 && size.Bytes() > limit {
		return problemf(pools.ErrOutOfRange, "the size would be %d GiB (arrays count in GiB), more than limit_bytes %d", size, limit)
	}
	return nil
}

// protocolOf returns how nodes reach a new volume.
func protocolOf(n pools.NewVolume, chosen messages.Reservation, from *source) (v1alpha1.Protocol, error) {
	protocol := v1alpha1.Protocol(n.Protocol)
	switch {
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
func (t *task) wanted(n pools.NewVolume, chosen messages.Reservation, protocol v1alpha1.Protocol, size array.GiB) v1alpha1.PoolVolume {
	v := v1alpha1.PoolVolume{
		ObjectMeta: metav1.ObjectMeta{Name: t.name, Labels: map[string]string{}},
		Spec: v1alpha1.PoolVolumeSpec{
			ClassName: chosen.Class, PoolName: chosen.Pool, Size: *resource.NewQuantity(size.Bytes(), resource.BinarySI),
			VolumeMode: volumeModeOf(n.Block), Protocol: protocol, FSType: fsTypeOf(n, protocol), Management: v1alpha1.Managed,
			Flags: v1alpha1.VolumeFlags{Compress: chosen.Compress, Dedupe: chosen.Dedupe, Encrypt: chosen.Encrypt},
		},
	}
	label(&v, v1alpha1.LabelPool, chosen.Pool)
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
		label(&v, v1alpha1.LabelNamespace, n.Claim.Namespace)
	}
	return v
}

func volumeModeOf(block bool) v1alpha1.VolumeMode {
	if block {
		return v1alpha1.Block
	}
	return v1alpha1.Filesystem
}

// fsTypeOf returns the file system that a node makes on a volume.
func fsTypeOf(n pools.NewVolume, protocol v1alpha1.Protocol) string {
	switch {
	case n.Block || protocol != v1alpha1.ISCSI:
		return ""
	case n.FSType == "":
		return "ext4"
	}
	return n.FSType
}
