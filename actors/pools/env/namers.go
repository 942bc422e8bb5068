package env

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Namers are the objects of one kind that name volumes or snapshots, and need them. Of most the name follows from
// that of the volume. One that a person has made may have any, and only a list tells.
type Namers struct {
	kind string
	one  func() client.Object
	all  func() client.ObjectList
	// needs returns the volume or snapshot that an object needs; empty if it needs none.
	needs func(client.Object) string

	mu sync.Mutex
	// listed is when the last list began; byHandle has the names of that list, by volume or snapshot.
	listed   time.Time
	byHandle map[string]string
}

// Of returns the object that needs a volume or a snapshot; empty where there is none. It looks at the likely names
// before it lists all.
func (n *Namers) Of(ctx context.Context, from Resources, handle, likely string) (string, error) {
	asked := time.Now()
	for _, name := range []string{handle, likely, n.known(handle)} {
		if name == "" {
			continue
		}
		one := n.one()
		err := from.Get(ctx, client.ObjectKey{Name: name}, one)
		if client.IgnoreNotFound(err) != nil {
			return "", KubernetesError(err, "read the "+n.kind+" "+name)
		}
		if err == nil && n.needs(one) == handle {
			return name, nil
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.listed.After(asked) { // else a list that serves this question too was made while it waited
		if err := n.list(ctx, from); err != nil {
			return "", err
		}
	}
	return n.byHandle[handle], nil
}

func (n *Namers) known(handle string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byHandle[handle]
}

// list asks for all objects. A kind that the cluster does not have has none. mu is held.
func (n *Namers) list(ctx context.Context, from Resources) error {
	began, byHandle := time.Now(), map[string]string{}
	err := EachOf(ctx, from, n.kind, n.all, func(object client.Object) {
		if handle := n.needs(object); handle != "" {
			byHandle[handle] = object.GetName()
		}
	})
	if err != nil {
		return err
	}
	n.listed, n.byHandle = began, byHandle
	return nil
}

// EachOf lists all objects of a kind, page by page. A kind that the cluster does not have has none.
func EachOf(ctx context.Context, from Resources, kind string, empty func() client.ObjectList, each func(client.Object)) error {
	page := client.ListOptions{Limit: 500}
	for {
		list := empty()
		if err := client.IgnoreNotFound(from.List(ctx, list, &page)); err != nil {
			return KubernetesError(err, "list the "+kind+"s")
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("the list of the %ss has a %T", kind, item)
			}
			each(object)
			return nil
		}); err != nil {
			return err
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return nil
		}
	}
}

// newVolumeNamers returns the PersistentVolumes of CSI drivers that need their volume.
func newVolumeNamers(drivers ...string) *Namers {
	return &Namers{
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
func newBoundNamers(drivers ...string) *Namers {
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
func newSnapshotNamers(drivers ...string) *Namers {
	return &Namers{
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
