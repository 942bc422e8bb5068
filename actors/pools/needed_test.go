package pools

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// TestVolumeThatAPersistentVolumeNamesIsNotDeletedByHand: only a call deletes it, or the deletion of that one.
func TestVolumeThatAPersistentVolumeNamesIsNotDeletedByHand(t *testing.T) {
	ours := func(name, volume string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: testDriver, VolumeHandle: volume},
				},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		}
	}
	for name, test := range map[string]struct {
		pv     *corev1.PersistentVolume
		change func(*corev1.PersistentVolume)
		needed bool
	}{
		"provisioned":      {ours("pvc-1", "pvc-1"), nil, true},
		"made by a person": {ours("static", "pvc-1"), nil, true},
		"released, and retained": {ours("pvc-1", "pvc-1"), func(pv *corev1.PersistentVolume) {
			pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain
		}, true},
		"released":         {ours("pvc-1", "pvc-1"), func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }, false},
		"another volume's": {ours("pvc-1", "pvc-2"), nil, false},
		"another driver's": {ours("pvc-1", "pvc-1"), func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }, false},
		"of another kind":  {ours("pvc-1", "pvc-1"), func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil }, false},
	} {
		for _, by := range []string{"a call", "the end of the PersistentVolume"} {
			t.Run(name+", then "+by, func(t *testing.T) {
				w := newWorld(t)
				w.create("pvc-1", 1, false)
				if test.change != nil {
					test.change(test.pv)
				}
				pv := test.pv.DeepCopy()
				w.must(w.api.Create(w.ctx, pv))
				pv.Status = test.pv.Status
				w.must(w.api.Status().Update(w.ctx, pv))
				w.must(w.api.Delete(w.ctx, w.volume("pvc-1")))
				if test.needed {
					w.until("the resource says why it waits", func() bool {
						v := w.volume("pvc-1")
						return v != nil && v.Status.State == v1alpha1.VolumeDeleting &&
							strings.Contains(v.Status.Message, "PersistentVolume "+test.pv.Name)
					})
					if len(w.on().volumes) != 1 {
						t.Fatal("the volume is gone")
					}
					if by == "a call" {
						w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
					} else {
						w.must(w.api.Delete(w.ctx, pv))
					}
				}
				w.until("the volume is gone", func() bool { return w.volume("pvc-1") == nil })
				w.nothingLeft()
			})
		}
	}
}

// TestSnapshotThatAContentNamesIsNotDeletedByHand either.
func TestSnapshotThatAContentNamesIsNotDeletedByHand(t *testing.T) {
	const name = "snapshot-00000000-1111-4222-8333-444444444444"
	content := func(name string, spec, status map[string]any) *unstructured.Unstructured {
		c := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": status}}
		c.SetGroupVersionKind(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshotContent"})
		c.SetName(name)
		return c
	}
	spec := func(driver string) map[string]any {
		return map[string]any{"driver": driver, "deletionPolicy": "Delete", "source": map[string]any{"snapshotHandle": name}}
	}
	for what, test := range map[string]struct {
		content *unstructured.Unstructured
		needed  bool
	}{
		"asked for":        {content("snapcontent-00000000-1111-4222-8333-444444444444", spec(testDriver), nil), true},
		"made by a person": {content("static", spec(testDriver), nil), true},
		"another driver's": {content("static", spec("other"), nil), false},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.create("pvc-1", 1, false)
			_, err := w.CreateSnapshot(w.ctx, name, "pvc-1")
			w.must(err)
			w.must(w.api.Create(w.ctx, test.content))
			w.must(w.api.Delete(w.ctx, w.snapshot(name)))
			if test.needed {
				w.until("the resource says why it waits", func() bool {
					s := w.snapshot(name)
					return s != nil && strings.Contains(s.Status.Message, "VolumeSnapshotContent "+test.content.GetName())
				})
				if len(w.on().snapshots) != 1 {
					t.Fatal("the snapshot is gone")
				}
				w.must(w.repeat(func() error { return w.DeleteSnapshot(w.ctx, name) }))
			}
			w.until("the snapshot is gone", func() bool { return w.snapshot(name) == nil })
			w.must(w.repeat(func() error { return w.DeleteVolume(w.ctx, "pvc-1") }))
			w.nothingLeft()
		})
	}
}
