package kubeapi

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/apitest"
)

// credentials makes a directory as a pod has it.
func credentials(t *testing.T, token string, ca []byte) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "token", []byte(token+"\n"))
	write(t, dir, "ca.crt", ca)
	return dir
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts an API server, with a client of a node and one that may do everything.
func start(t *testing.T) (*apitest.Server, *Client, client.WithWatch) {
	t.Helper()
	s := apitest.Start()
	t.Cleanup(s.Close)
	admin, err := s.Client()
	must(t, err)
	node, err := New(Config{Server: s.URL(), Credentials: credentials(t, "secret-token", nil), CHAPNamespace: "katbox-chap"})
	must(t, err)
	node.patience = 2 * time.Minute // a guard against hangs
	return s, node, admin
}

func TestThePoolNodeIsMadeAndCorrected(t *testing.T) {
	s, node, admin := start(t)
	want := NewNode{Name: "node-1", Addresses: []string{"10.9.0.7"}, IQN: "iqn.2026-11.io.katbox:0:node-1"}
	ensure := func(change Change) *v1alpha1.PoolNode {
		t.Helper()
		got, err := node.EnsureNode(t.Context(), want)
		if err != nil || got != change {
			t.Errorf("the change is %d, error %v, want %d", got, err, change)
		}
		var n v1alpha1.PoolNode
		must(t, admin.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &n))
		if !slices.Equal(n.Spec.Addresses, want.Addresses) || n.Spec.IQN != want.IQN {
			t.Errorf("the PoolNode is %+v, want %+v", n.Spec, want)
		}
		return &n
	}
	ensure(Made)
	ensure(Unchanged)
	want.Addresses = []string{"10.9.0.8"}
	n := ensure(Corrected)
	n.Labels = map[string]string{"of": "a person"}
	n.Spec.IQN = "iqn.2026-11.x:other"
	must(t, admin.Update(t.Context(), n))
	if n = ensure(Corrected); n.Labels["of"] == "" {
		t.Error("a label of a person is gone")
	}
	must(t, admin.Delete(t.Context(), n))
	ensure(Made)

	// What the API server has in its memory may be older than the object, or than its deletion.
	var first bool
	s.Refuse(func(r *http.Request) error {
		if r.Method != http.MethodGet || first {
			return nil
		}
		first = true
		if r.URL.Query().Get("resourceVersion") != "0" {
			t.Errorf("asked by %s, which costs a look into etcd", r.URL)
		}
		return notFound{}
	})
	want.Addresses = []string{"10.9.0.9"}
	ensure(Corrected)

	if _, err := node.EnsureNode(t.Context(), NewNode{Name: "node-1"}); !errors.Is(err, volume.ErrInvalid) {
		t.Errorf("a PoolNode without addresses: %v", err)
	}
	n.Finalizers = []string{"a/b"}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: "node-1"}, n))
	n.Finalizers = []string{"a/b"}
	must(t, admin.Update(t.Context(), n))
	must(t, admin.Delete(t.Context(), n))
	if _, err := node.EnsureNode(t.Context(), want); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("a PoolNode that is being deleted: %v", err)
	}
}

// notFound is the answer that an object is not there.
type notFound struct{}

func (notFound) Error() string { return "not found" }
func (notFound) Status() metav1.Status {
	return metav1.Status{Code: http.StatusNotFound, Message: "not found", Reason: metav1.StatusReasonNotFound,
		Details: &metav1.StatusDetails{Name: "node-1"}}
}

// attachment makes a PoolAttachment with this status.
func attachment(t *testing.T, admin client.Client, protocol v1alpha1.Protocol,
	status v1alpha1.PoolAttachmentStatus) *v1alpha1.PoolAttachment {
	t.Helper()
	a := &v1alpha1.PoolAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "v.node-1", Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.PoolAttachmentSpec{VolumeName: "v", NodeName: "node-1", PoolName: "p", Protocol: protocol},
	}
	must(t, admin.Create(t.Context(), a))
	a.Status = status
	must(t, admin.Status().Update(t.Context(), a))
	return a
}

func TestSessionsAreReported(t *testing.T) {
	const (
		iscsi, nfs = v1alpha1.ISCSI, v1alpha1.NFS
		pending    = v1alpha1.AttachmentLoginPending
		ready      = v1alpha1.AttachmentReady
		detaching  = v1alpha1.AttachmentDetaching
	)
	for name, tt := range map[string]struct {
		protocol v1alpha1.Protocol
		state    v1alpha1.AttachmentState
		session  string
		active   bool
		want     v1alpha1.AttachmentState
		reported string
	}{
		"logged in":                 {iscsi, pending, "", true, ready, "Active"},
		"again":                     {iscsi, ready, "Active", true, ready, "Active"},
		"logged in anew":            {iscsi, pending, "Active", true, ready, "Active"},
		"lost":                      {iscsi, ready, "Active", false, pending, "Disconnected"},
		"not logged in":             {iscsi, pending, "", false, pending, "Disconnected"},
		"lost while it is detached": {iscsi, detaching, "Active", false, detaching, "Disconnected"},
		"there while it is detached": {iscsi, detaching, "Disconnected", true, detaching,
			"Active"},
		"failed":                {iscsi, v1alpha1.AttachmentFailed, "", true, v1alpha1.AttachmentFailed, "Active"},
		"NFS knows no sessions": {nfs, ready, "", false, ready, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, node, admin := start(t)
			lun := int32(3)
			a := attachment(t, admin, tt.protocol, v1alpha1.PoolAttachmentStatus{
				State: tt.state, ISCSIStatus: tt.session, ServerID: "srv-1", Target: "iqn.x:y", Portal: "10.9.0.1:3260", LUN: &lun, Message: "text",
			})
			must(t, node.ReportSession(t.Context(), "v.node-1", tt.active))
			version := a.ResourceVersion
			must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(a), a))
			s := a.Status
			if s.State != tt.want || s.ISCSIStatus != tt.reported {
				t.Errorf("the attachment is %s, %s, want %s, %s", s.State, s.ISCSIStatus, tt.want, tt.reported)
			}
			if s.ServerID != "srv-1" || s.Target != "iqn.x:y" || s.Portal != "10.9.0.1:3260" || s.LUN == nil || *s.LUN != 3 ||
				s.Message != "text" {
				t.Errorf("the report changed more: %+v", s)
			}
			if same := tt.state == tt.want && tt.session == tt.reported; same != (a.ResourceVersion == version) {
				t.Errorf("version %s after %s", a.ResourceVersion, version)
			}
		})
	}
}

// TestAReportTakesNothingBack: the controller has moved the attachment between the node's look and its
// report.
func TestAReportTakesNothingBack(t *testing.T) {
	s, node, admin := start(t)
	attachment(t, admin, v1alpha1.ISCSI, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentLoginPending})
	var looked int
	s.Refuse(func(r *http.Request) error {
		if r.Method != http.MethodPatch {
			return nil
		}
		if looked++; looked == 1 {
			a := &v1alpha1.PoolAttachment{}
			if err := admin.Get(t.Context(), client.ObjectKey{Name: "v.node-1"}, a); err != nil {
				return err
			}
			a.Status.State = v1alpha1.AttachmentDetaching
			return admin.Status().Update(t.Context(), a)
		}
		return nil
	})
	must(t, node.ReportSession(t.Context(), "v.node-1", true))
	a := &v1alpha1.PoolAttachment{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: "v.node-1"}, a))
	if looked != 2 || a.Status.State != v1alpha1.AttachmentDetaching || a.Status.ISCSIStatus != "Active" {
		t.Errorf("after %d looks the attachment is %+v", looked, a.Status)
	}

	// One that is gone needs no report, at whatever moment it goes.
	s.Refuse(func(r *http.Request) error {
		if r.Method != http.MethodPatch {
			return nil
		}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			return err // also a connection that the server has closed: only a GET is sent again
		}
		a.Finalizers = nil
		if err := admin.Update(t.Context(), a); err != nil {
			return err
		}
		return admin.Delete(t.Context(), a)
	})
	must(t, node.ReportSession(t.Context(), "v.node-1", false))
	must(t, node.ReportSession(t.Context(), "v.node-1", true))

	attachment(t, admin, v1alpha1.ISCSI, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentLoginPending})
	s.Refuse(func(r *http.Request) error {
		if r.Method == http.MethodPatch {
			return conflict{}
		}
		return nil
	})
	if err := node.ReportSession(t.Context(), "v.node-1", true); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("a report that always meets another change: %v", err)
	}
}

type conflict struct{}

func (conflict) Error() string { return "conflict" }
func (conflict) Status() metav1.Status {
	return metav1.Status{Code: http.StatusConflict, Message: "the object has been modified", Reason: metav1.StatusReasonConflict}
}

func TestThePortalIsThatOfNow(t *testing.T) {
	_, node, admin := start(t)
	if _, err := node.Where(t.Context(), "v.node-1"); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("no attachment: %v", err)
	}
	a := attachment(t, admin, v1alpha1.ISCSI, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentAttaching})
	if _, err := node.Where(t.Context(), "v.node-1"); !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(),
		`in the state "Attaching"`) {
		t.Errorf("not attached yet: %v", err)
	}
	zero := int32(0)
	a.Status = v1alpha1.PoolAttachmentStatus{Target: "iqn.x:y", Portal: "10.9.0.2:3260", LUN: &zero}
	must(t, admin.Status().Update(t.Context(), a))
	got, err := node.Where(t.Context(), "v.node-1")
	if want := (Where{Target: "iqn.x:y", Address: "10.9.0.2:3260"}); err != nil || got != want {
		t.Errorf("the portal is %+v, error %v", got, err)
	}
}

// TestTheExportIsThatOfNow, as the mount table shows it. One of an earlier controller does not say it.
func TestTheExportIsThatOfNow(t *testing.T) {
	_, node, admin := start(t)
	a := attachment(t, admin, v1alpha1.NFS, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentReady})
	if _, err := node.Where(t.Context(), "v.node-1"); !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("without an export: %v", err)
	}
	a.Status.Export = "10.9.0.2:/export//x/"
	must(t, admin.Status().Update(t.Context(), a))
	got, err := node.Where(t.Context(), "v.node-1")
	if want := (Where{Export: "10.9.0.2:/export/x"}); err != nil || got != want {
		t.Errorf("it is at %+v, error %v", got, err)
	}
}

// TestAttachedUntilItIsGone: an attachment that is being deleted is there, and a server that does not say is an error.
func TestAttachedUntilItIsGone(t *testing.T) {
	s, node, admin := start(t)
	attached := func(want bool) {
		t.Helper()
		if is, err := node.Attached(t.Context(), "v.node-1"); err != nil || is != want {
			t.Errorf("attached: %t, error %v, want %t", is, err, want)
		}
	}
	attached(false)
	a := attachment(t, admin, v1alpha1.NFS, v1alpha1.PoolAttachmentStatus{State: v1alpha1.AttachmentReady})
	attached(true)
	must(t, admin.Delete(t.Context(), a))
	attached(true)
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(a), a))
	a.Finalizers = nil
	must(t, admin.Update(t.Context(), a))
	attached(false)
	s.Refuse(func(*http.Request) error { return conflict{} })
	if is, err := node.Attached(t.Context(), "v.node-1"); is || !errors.Is(err, volume.ErrUnavailable) {
		t.Errorf("a server that refuses: attached %t, error %v", is, err)
	}
}

func TestSecretsAndTheCluster(t *testing.T) {
	_, node, admin := start(t)
	if _, _, err := node.CHAP(t.Context(), "chap-p"); !errors.Is(err, volume.ErrNotFound) || !strings.Contains(err.Error(),
		"get the Secret katbox-chap/chap-p") {
		t.Errorf("no Secret: %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "katbox-chap", Name: "chap-p"}, Data: map[string][]byte{
		corev1.BasicAuthUsernameKey: []byte("x"), chapUserKey: []byte("user"),
	}}
	must(t, admin.Create(t.Context(), secret))
	if _, _, err := node.CHAP(t.Context(), "chap-p"); !errors.Is(err, volume.ErrUnavailable) || !strings.Contains(err.Error(),
		chapSecretKey) {
		t.Errorf("half a Secret: %v", err)
	}
	secret.Data[chapSecretKey] = []byte("twelve-bytes\n")
	must(t, admin.Update(t.Context(), secret))
	user, password, err := node.CHAP(t.Context(), "chap-p")
	if err != nil || user != "user" || password != "twelve-bytes\n" {
		t.Errorf("logs in as %q with %q, error %v", user, password, err)
	}
	// The name comes from a VolumeAttachment, which others may write.
	for _, name := range []string{"", "../../../katbox/secrets/vpsa-1", "..", "a/b", "a?b", "a#b", "A", "a%2fb"} {
		if _, _, err := node.CHAP(t.Context(), name); !errors.Is(err, volume.ErrInvalid) {
			t.Errorf("the Secret %q: %v", name, err)
		}
	}
	var system corev1.Namespace
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system))
	if id, err := node.ClusterID(t.Context()); err != nil || id == "" || id != string(system.UID) {
		t.Errorf("the cluster is %q, error %v, want %s", id, err, system.UID)
	}
}

// TestACallEndsWithItsContext, and at a server that never answers.
func TestACallEndsWithItsContext(t *testing.T) {
	s, node, _ := start(t)
	hang := make(chan struct{})
	defer close(hang)
	asked := make(chan struct{}, 2)
	s.Refuse(func(*http.Request) error {
		asked <- struct{}{}
		<-hang
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := node.ClusterID(ctx); !errors.Is(err, volume.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
	node.patience = time.Millisecond
	if _, err := node.ClusterID(t.Context()); !errors.Is(err, volume.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "get the Namespace kube-system: no answer from the API server at "+s.URL()) {
		t.Errorf("a server that does not answer: %v", err)
	}
}
