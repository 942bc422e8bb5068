package main

import (
	"context"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// claim makes a claim in the namespace shop.
func (w *world) claim(name string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: annotations}}
	must(w.t, w.kube.Create(w.t.Context(), c))
	return c
}

// createFor asks for the volume of a claim until it is there, as a provisioner does.
func (r *replica) createFor(name, claim string) *csi.Volume {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		made, err := csi.NewControllerClient(r.conn).CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
			VolumeCapabilities: []*csi.VolumeCapability{{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			}},
			Parameters: map[string]string{"csi.storage.k8s.io/pvc/namespace": "shop", "csi.storage.k8s.io/pvc/name": claim},
		}, grpc.WaitForReady(true))
		if err == nil {
			return made.GetVolume()
		}
		if ctx.Err() != nil {
			r.t.Fatal(err)
		}
		_ = retry.Pause(ctx, 100*time.Millisecond)
	}
}

// record waits until the resource of a volume is as it has to be; nil: there is none.
func (w *world) record(what string, is func(*v1alpha1.PoolVolume) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		v := &v1alpha1.PoolVolume{}
		err := w.kube.Get(ctx, client.ObjectKey{Name: "pvc-1"}, v)
		if apierrors.IsNotFound(err) {
			v, err = nil, nil
		}
		if err == nil && is(v) {
			return
		}
		if ctx.Err() != nil {
			w.t.Fatalf("never: %s; the record is %+v, %v", what, v, err)
		}
		_ = retry.Pause(ctx, 50*time.Millisecond)
	}
}

// TestDeletedClaimComesBack: the whole way, over the socket, with watches of claims and a controller that is killed.
func TestDeletedClaimComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	first := w.claim("first", map[string]string{v1alpha1.LifespanAnnotation: "1h"})
	r := w.start("one", "--leader-election=false")
	if v := r.createFor("pvc-1", "first"); v.GetVolumeId() != "pvc-1" {
		t.Fatalf("made %v", v)
	}
	lasts := func(lifespan time.Duration) func(*v1alpha1.PoolVolume) bool {
		return func(v *v1alpha1.PoolVolume) bool {
			return v != nil && v.Spec.Lifespan != nil && v.Spec.Lifespan.Duration == lifespan
		}
	}
	w.record("the lifespan of the claim", lasts(time.Hour))
	first.Annotations[v1alpha1.LifespanAnnotation] = "1d"
	must(t, w.kube.Update(t.Context(), first))
	w.record("what the claim says since", lasts(24*time.Hour))

	drop := func(r *replica) {
		t.Helper()
		r.repeat(func(ctx context.Context, c csi.ControllerClient) error {
			_, err := c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "pvc-1"}, grpc.WaitForReady(true))
			return err
		})
	}
	must(t, w.kube.Delete(t.Context(), first))
	drop(r)
	w.record("retained", func(v *v1alpha1.PoolVolume) bool { return v != nil && v.Status.State == v1alpha1.VolumeRetained })
	if len(w.array.Volumes()) != 1 {
		t.Fatalf("on the array: %+v", w.array.Volumes())
	}
	must(t, r.cmd.Process.Kill())
	<-r.ended

	second := w.claim("second", map[string]string{v1alpha1.RestoreAnnotation: "first", v1alpha1.LifespanAnnotation: "1s"})
	r = w.start("two", "--leader-election=false")
	for range 2 {
		if v := r.createFor("pvc-2", "second"); v.GetVolumeId() != "pvc-1" || v.GetCapacityBytes() != 1<<30 {
			t.Fatalf("restored %v", v)
		}
	}
	w.record("given to the second claim", func(v *v1alpha1.PoolVolume) bool {
		return v != nil && v.Status.State == v1alpha1.VolumeReady && v.Spec.ClaimRef.UID == second.UID && v.Spec.RequestName == "pvc-2"
	})
	if len(w.array.Volumes()) != 1 {
		t.Errorf("on the array: %+v", w.array.Volumes())
	}
	must(t, w.kube.Delete(t.Context(), second))
	drop(r)
	w.record("expired", func(v *v1alpha1.PoolVolume) bool { return v == nil })
	if n := len(w.array.Volumes()); n != 0 {
		t.Errorf("%d volumes are left on the array", n)
	}
}
