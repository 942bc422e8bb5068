//go:build crashpoints

package main

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/v1alpha1"
)

// afterlife plays a claim that is deleted, another one that gets its volume back, and the end of that one's lifespan.
func (s *story) afterlife() {
	s.t.Helper()
	must(s.t, s.kube.Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	first := s.claim("first", map[string]string{v1alpha1.LifespanAnnotation: "1h"})
	id := s.makesFor("pvc-kept", "first")
	must(s.t, s.kube.Delete(s.t.Context(), first))
	s.deletes(id)
	s.becomes(id, "retained", func(v *v1alpha1.PoolVolume) bool { return v != nil && v.Status.State == v1alpha1.VolumeRetained })
	if n := len(s.array.Volumes()); n != 1 {
		s.t.Errorf("one volume is retained, and %d are on the array", n)
	}
	second := s.claim("second", map[string]string{v1alpha1.RestoreAnnotation: "first", v1alpha1.LifespanAnnotation: "1s"})
	if restored := s.makesFor("pvc-restored", "second"); restored != id {
		s.t.Errorf("restored %s, want %s", restored, id)
	}
	s.becomes(id, "given to the second claim", func(v *v1alpha1.PoolVolume) bool {
		return v != nil && v.Status.State == v1alpha1.VolumeReady && v.Spec.ClaimRef.UID == second.UID
	})
	must(s.t, s.kube.Delete(s.t.Context(), second))
	s.deletes(id)
	s.becomes(id, "expired", func(v *v1alpha1.PoolVolume) bool { return v == nil })
	if left := s.array.Volumes(); len(left) > 0 {
		s.t.Errorf("left on the array: %+v", left)
	}
}

// makesFor makes the volume of a claim, and returns its ID.
func (s *story) makesFor(name, claim string) (id string) {
	s.t.Helper()
	s.call("create "+name, func(ctx context.Context, c csi.ControllerClient) error {
		made, err := c.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30}, VolumeCapabilities: []*csi.VolumeCapability{capability(false)},
			Parameters: map[string]string{"csi.storage.k8s.io/pvc/namespace": "shop", "csi.storage.k8s.io/pvc/name": claim},
		})
		id = made.GetVolume().GetVolumeId()
		return err
	})
	return id
}

// becomes waits until the resource of a volume is as it has to be, nil if there is none; after a crash, by the next
// controller.
func (s *story) becomes(id, what string, is func(*v1alpha1.PoolVolume) bool) {
	s.t.Helper()
	for {
		v := &v1alpha1.PoolVolume{}
		err := s.kube.Get(s.t.Context(), client.ObjectKey{Name: id}, v)
		if apierrors.IsNotFound(err) {
			v, err = nil, nil
		}
		switch {
		case err == nil && is(v):
			return
		case s.deadline.Err() != nil:
			s.t.Fatalf("never: %s; the record is %+v, %v", what, v, err)
		}
		select {
		case <-s.replica.ended:
			s.startNext()
		default:
			_ = retry.Pause(s.deadline, 20*time.Millisecond)
		}
	}
}
