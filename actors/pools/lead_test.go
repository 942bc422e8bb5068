package pools

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/fakepools"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// scheduled makes a claim that wants data back and for which the scheduler has chosen a node. It returns the claim as
// the provisioner has it then.
func (h *testPools) scheduled(name, restore, node string) *metav1.PartialObjectMetadata {
	h.Helper()
	annotations := restores(restore)
	annotations[selectedNodeOf] = node
	return addClaim(h.T, h.kube, "ns", name, annotations)
}

// leadsTo returns the node of a claim.
func (h *testPools) leadsTo(name string) string {
	h.Helper()
	c := rules.ClaimObject("", "", "")
	if err := h.kube.Get(h.Context(), types.NamespacedName{Namespace: "ns", Name: name}, c); err != nil {
		h.Fatal(err)
	}
	return c.Annotations[selectedNodeOf]
}

// reschedule does what the provisioner does after the answer that a node has no room.
func (h *testPools) reschedule(c *metav1.PartialObjectMetadata) error {
	now := clone(c).(*metav1.PartialObjectMetadata)
	now.Annotations = maps.Clone(c.Annotations)
	delete(now.Annotations, selectedNodeOf)
	return h.kube.Update(h.Context(), now)
}

// wantLed fails the test unless a call for a claim's volume was answered that its node has no room, and the claim has
// another node.
func (h *testPools) wantLed(name, restore, from, to string, near []string) {
	h.Helper()
	c := h.scheduled(name, restore, from)
	_, err := h.local().CreateVolume(h.Context(), newLocal(name, 10, near))
	if !errors.Is(err, volume.ErrNoSpace) || rules.IsOpen(err) {
		h.Errorf("asked for on node %s: %v", from, err)
	}
	if got := h.leadsTo(name); got != to {
		h.Errorf("claim %s was led to %q, want %s", name, got, to)
	}
	if err := h.reschedule(c); !apierrors.IsConflict(err) {
		h.Errorf("the provisioner has removed the node of the claim, which was changed meanwhile: %v", err)
	}
}

// inLed runs a test with the volume v1 of a deleted claim on the disk of node n1, and a node n2.
func inLed(t *testing.T, test func(h *testPools, one, two *fakepools.Node)) {
	t.Helper()
	inLocalAfterlife(t, 24*time.Hour, func(h *testPools) {
		one, two := nodeWith(disk1), nodeWith(disk2)
		h.connects("n1", one)
		h.connects("n2", two)
		h.bindLocal("v1", 10, []string{disk1})
		h.retainLocal("v1")
		test(h, one, two)
	})
}

// TestClaimIsLedToItsData: the scheduler has chosen another node.
func TestClaimIsLedToItsData(t *testing.T) {
	inLed(t, func(h *testPools, one, _ *fakepools.Node) {
		h.wantLed("v2", "v1", "n2", "n1", []string{disk2})
		h.wantEvents("v2 Normal NodeChosen: the data of volume v1 are on a disk of node n1: the claim's volume and its pod go there, and "+
			"not to node n2", 1)
		h.wantEvents("RestoreFailed", 0)
		h.wantOn("led", one, disk1, "v1*")

		got, err := h.local().CreateVolume(h.Context(), newLocal("v2", 10, []string{disk1}))
		if err != nil || got.ID != "v1" || got.On != disk1 {
			h.Fatalf("restored %+v, %v", got, err)
		}
		h.wantEvents("v2 Normal Restored: the data of claim v1", 1)
		h.wantEvents("10Gi, on a disk of node n1, where its pods run", 2) // of the volume as well
		// A late call for the other node leads there again, and changes nothing of the volume.
		if err := h.kube.Delete(h.Context(), rules.ClaimObject("ns", "v2", "")); err != nil {
			h.Fatal(err)
		}
		h.wantLed("v2", "v1", "n2", "n1", []string{disk2})
		h.wantOn("restored", one, disk1, "v1")
	})
}

// TestClaimIsLedToWhereTheDiskIsNow: pools are told by the UUID on the disk.
func TestClaimIsLedToWhereTheDiskIsNow(t *testing.T) {
	inLed(t, func(h *testPools, one, _ *fakepools.Node) {
		h.controller.NodeAway("n1", one)
		h.wantLed("v2", "v1", "n2", "n1", []string{disk2}) // nothing else is known
		h.connects("n3", one)                              // with the disk of n1
		h.wantLed("v3", "v1", "n2", "n3", []string{disk2})
		got, err := h.local().CreateVolume(h.Context(), newLocal("v3", 10, []string{disk1}))
		if err != nil || got.ID != "v1" {
			h.Fatalf("restored %+v, %v", got, err)
		}
	})
}

// TestClaimWaitsForItsNode while Kubernetes does not know yet that the node has the disk.
func TestClaimWaitsForItsNode(t *testing.T) {
	inLed(t, func(h *testPools, _, _ *fakepools.Node) {
		h.scheduled("v2", "v1", "n1")
		_, err := h.local().CreateVolume(h.Context(), newLocal("v2", 10, []string{disk3}))
		if !errors.Is(err, volume.ErrUnavailable) || h.leadsTo("v2") != "n1" {
			h.Errorf("%v, and it was led to %q", err, h.leadsTo("v2"))
		}
	})
}

// TestClaimIsNotLed where there is nothing to lead it to.
func TestClaimIsNotLed(t *testing.T) {
	inLed(t, func(h *testPools, one, _ *fakepools.Node) {
		still := func(name string, err, want error) {
			h.Helper()
			if !errors.Is(err, want) || h.leadsTo(name) != "n2" {
				h.Errorf("claim %s: %v, and it was led to %q", name, err, h.leadsTo(name))
			}
		}
		h.scheduled("nothing", "v9", "n2")
		_, err := h.local().CreateVolume(h.Context(), newLocal("nothing", 10, []string{disk2}))
		still("nothing", err, volume.ErrNotFound)

		h.scheduled("small", "v1", "n2")
		_, err = h.local().CreateVolume(h.Context(), newLocal("small", 1, []string{disk2}))
		still("small", err, volume.ErrInvalid)

		foreign := addClaim(h.T, h.kube, "other", "v2", map[string]string{v1alpha1.RestoreAnnotation: "v1", selectedNodeOf: "n2"})
		n := newLocal("foreign", 10, []string{disk2})
		n.Claim = pools.Claim{Namespace: "other", Name: "v2"}
		if _, err := h.local().CreateVolume(h.Context(), n); !errors.Is(err, volume.ErrNotFound) {
			h.Errorf("the claim of another namespace: %v", err)
		}
		if err := h.reschedule(foreign); err != nil {
			h.Errorf("it was changed: %v", err)
		}

		// The API server takes no patch.
		h.kube.refusing(func(key kubeKey) error {
			if key.kind != poolmessages.PersistentVolumeClaimKind {
				return nil
			}
			return apierrors.NewForbidden(h.kube.resource(key), key.name, errors.New("no right"))
		})
		h.scheduled("refused", "v1", "n2")
		_, err = h.local().CreateVolume(h.Context(), newLocal("refused", 10, []string{disk2}))
		still("refused", err, volume.ErrNoSpace)
		if rules.IsOpen(err) || !strings.Contains(err.Error(), "no right") {
			h.Error(err)
		}
		h.wantEvents("refused Warning RestoreFailed: the data of volume v1 are on a disk of node n1", 1)
		h.wantOn("after all", one, disk1, "v1*")
	})
}

// TestClaimThatHasChangedIsNotLed: another call follows, with what the claim is then.
func TestClaimThatHasChangedIsNotLed(t *testing.T) {
	inLed(t, func(h *testPools, _, _ *fakepools.Node) {
		h.kube.refusing(func(key kubeKey) error {
			if key.kind != poolmessages.PersistentVolumeClaimKind {
				return nil
			}
			return apierrors.NewConflict(h.kube.resource(key), key.name, errors.New("changed"))
		})
		h.scheduled("v2", "v1", "n2")
		_, err := h.local().CreateVolume(h.Context(), newLocal("v2", 10, []string{disk2}))
		if !errors.Is(err, volume.ErrNoSpace) || rules.IsOpen(err) || h.leadsTo("v2") != "n2" {
			h.Errorf("%v, and it was led to %q", err, h.leadsTo("v2"))
		}
		h.wantEvents("NodeChosen", 0)
		h.wantEvents("RestoreFailed", 0)
	})
}
