package kubeapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
)

// TestDiskIsConfirmed by the controller: it answers what the node has written last.
func TestDiskIsConfirmed(t *testing.T) {
	s, node, admin := start(t)
	a := attachment(t, admin, v1alpha1.ISCSI, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentReady, ServerID: "srv-1"})
	patches, meets := 0, false
	// says is what the controller writes once it sees the disk of a node.
	says := func(*v1alpha1.PoolAttachmentStatus) {}
	s.Refuse(func(r *http.Request) error {
		switch {
		case r.Method == http.MethodPatch && meets: // another change
			meets = false
			return conflict{}
		case r.Method == http.MethodPatch:
			patches++
		case patches > 0 && says != nil:
			// The node looks, after it has written.
			decide := says
			says = nil
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
				return err
			}
			decide(&a.Status)
			return admin.Status().Update(t.Context(), a)
		}
		return nil
	})
	confirm := func(wwid string, decide func(*v1alpha1.PoolAttachmentStatus)) error {
		patches, says = 0, decide
		return node.ConfirmDisk(t.Context(), "v.node-1", Disk{WWID: wwid, Bytes: 1 << 30})
	}
	meets = true
	must(t, confirm("naa.1", func(s *v1alpha1.PoolAttachmentStatus) {
		if s.WWID != "naa.1" || s.DiskBytes != 1<<30 || s.ServerID != "srv-1" || s.State != v1alpha1.AttachmentReady {
			t.Errorf("the node wrote %+v", s)
		}
		s.AcceptedWWID = s.WWID
	}))
	must(t, confirm("naa.1", nil))
	if patches != 0 {
		t.Errorf("%d changes for a disk that is confirmed", patches)
	}
	for range 2 { // what was refused is asked again
		err := confirm("naa.2", func(s *v1alpha1.PoolAttachmentStatus) {
			if s.RefusedWWID != "" {
				t.Errorf("the refusal of before is still there: %+v", s)
			}
			s.AcceptedWWID, s.RefusedWWID, s.Message = "", s.WWID, "the disk is naa.1"
		})
		if !errors.Is(err, ErrOtherDisk) || !strings.Contains(err.Error(), "the disk is naa.1") || patches != 1 {
			t.Errorf("%v after %d changes", err, patches)
		}
	}
	must(t, confirm("naa.2", func(s *v1alpha1.PoolAttachmentStatus) { s.AcceptedWWID, s.RefusedWWID, s.Message = s.WWID, "", "" }))
}

// TestDiskThatNobodyConfirms: the controller is away.
func TestDiskThatNobodyConfirms(t *testing.T) {
	_, node, admin := start(t)
	if err := node.ConfirmDisk(t.Context(), "v.node-1", Disk{WWID: "naa.1"}); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("no attachment: %v", err)
	}
	attachment(t, admin, v1alpha1.ISCSI, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentReady})
	node.confirming, node.confirmPause = 10*time.Millisecond, time.Millisecond
	if err := node.ConfirmDisk(t.Context(), "v.node-1", Disk{WWID: "naa.1"}); !errors.Is(err, volume.ErrUnavailable) ||
		!strings.Contains(err.Error(), "v.node-1") {
		t.Errorf("nobody answers: %v", err)
	}
}
