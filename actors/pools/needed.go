package pools

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// needed returns [pools.ErrInUse] while a PersistentVolume names the volume of a resource that a person has
// deleted: the data of a claim go with the claim, and not with a resource. A deletion that CSI asks for is not
// held up, because Kubernetes has decided before. One that was interrupted is not either: its PersistentVolume
// is Released, and to be deleted.
func (t *task) needed(ctx context.Context, v *v1alpha1.PoolVolume) error {
	name, err := t.volumeNamers.of(ctx, t.Resources, v.Name, v.Spec.RequestName)
	if err != nil || name == "" {
		return err
	}
	return rules.Errorf(pools.ErrInUse, "the PersistentVolume %s names volume %s; delete its claim, or the PersistentVolume if the claim "+
		"is gone, and what is on the %s goes then", name, v.Name, rules.MediumOfVolume(v))
}

// snapshotNeeded is needed for a snapshot, which a VolumeSnapshotContent names.
func (t *task) snapshotNeeded(ctx context.Context, s *v1alpha1.PoolSnapshot) error {
	name, err := t.snapshotNamers.of(ctx, t.Resources, s.Name, contentName(s))
	if err != nil || name == "" {
		return err
	}
	return rules.Errorf(pools.ErrInUse, "the VolumeSnapshotContent %s names snapshot %s; delete its VolumeSnapshot, or the "+
		"VolumeSnapshotContent if that is gone, and what is on %s goes then", name, s.Name, t.ground(s.Spec.PoolName))
}

// newVolumeNamers returns the PersistentVolumes of CSI drivers that need their volume.
func newVolumeNamers(drivers ...string) *namers {
	return &namers{
		kind: "PersistentVolume", one: func() client.Object { return &corev1.PersistentVolume{} },
		all: func() client.ObjectList { return &corev1.PersistentVolumeList{} },
		needs: func(o client.Object) string {
			pv := o.(*corev1.PersistentVolume)
			switch source := pv.Spec.CSI; {
			case source == nil || !slices.Contains(drivers, source.Driver):
				return ""
			case pv.Status.Phase == corev1.VolumeReleased && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
				return "" // its claim is gone, and it is to be deleted with its volume
			default:
				return source.VolumeHandle
			}
		},
	}
}

// newBoundNamers returns the PersistentVolumes of CSI drivers, whatever becomes of them.
func newBoundNamers(drivers ...string) *namers {
	n := newVolumeNamers(drivers...)
	n.needs = func(o client.Object) string {
		source := o.(*corev1.PersistentVolume).Spec.CSI
		if source == nil || !slices.Contains(drivers, source.Driver) {
			return ""
		}
		return source.VolumeHandle
	}
	return n
}

// snapshotContents is the kind of what Kubernetes has for a snapshot. A cluster may not have it.
var snapshotContents = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent"}

// newSnapshotNamers returns the VolumeSnapshotContents of CSI drivers that need their snapshot.
func newSnapshotNamers(drivers ...string) *namers {
	return &namers{
		kind: snapshotContents.Kind,
		one: func() client.Object {
			content := &unstructured.Unstructured{}
			content.SetGroupVersionKind(snapshotContents)
			return content
		},
		all: func() client.ObjectList {
			contents := &unstructured.UnstructuredList{}
			contents.SetGroupVersionKind(snapshotContents.GroupVersion().WithKind(snapshotContents.Kind + "List"))
			return contents
		},
		needs: func(o client.Object) string {
			content := o.(*unstructured.Unstructured).Object
			text := func(fields ...string) string {
				s, _, _ := unstructured.NestedString(content, fields...)
				return s
			}
			if !slices.Contains(drivers, text("spec", "driver")) || o.GetDeletionTimestamp() != nil && text("spec", "deletionPolicy") == "Delete" {
				return ""
			}
			if handle := text("status", "snapshotHandle"); handle != "" {
				return handle
			}
			return text("spec", "source", "snapshotHandle")
		},
	}
}

// contentName is the name that external-snapshotter gives to what it has for a snapshot that it asks for; empty
// for another snapshot.
func contentName(s *v1alpha1.PoolSnapshot) string {
	const asked, has = "snapshot-", "snapcontent-"
	name := s.Name
	if s.Spec.RequestName != "" {
		name = s.Spec.RequestName
	}
	if len(name) <= len(asked) || name[:len(asked)] != asked {
		return ""
	}
	return has + name[len(asked):]
}
