package arrays

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

// Where the arrays of the tests are.
const (
	nas     = "nas"
	targetA = "iqn.a"
	targetB = "iqn.b"
	portal  = "10.0.0.1:3260"
)

// kinds are volumes of all kinds. Several are on one target. The disk of number does not say which volume it is.
var kinds = []string{"nfs", "ext4", "xfs", "block", "number"}

// numbersWWID is what the disk of number says.
const numbersWWID = "t10.SCST_BIO2a8c-vol12"

func targetOf(attachment string) string {
	if strings.HasPrefix(attachment, "xfs") {
		return targetB
	}
	return targetA
}

// staging returns what the kubelet asks for.
func staging(id string) pools.Staging {
	s := pools.Staging{Volume: id, Path: "/staging/" + id, Attachment: pools.Attachment{Volume: id, Node: "node"}}
	switch id {
	case "nfs":
		s.Attachment.Protocol, s.Attachment.Export = pools.NFS, nas+":/export/"+id
		return s
	case "block":
		s.Block = true
	case "number":
		s.FSType = "ext4"
	default:
		s.FSType = id
	}
	s.Attachment.Protocol, s.Attachment.Portal, s.Attachment.CHAPSecret = pools.ISCSI, portal, "chap-pool"
	s.Attachment.Target, s.Attachment.Serial, s.Attachment.LUN = targetOf(id), "serial-"+id, len(id)
	return s
}

func podPath(id, pod string) string { return "/pods/" + pod + "/" + id }

func publication(id, pod string) pools.NodePublication {
	return pools.NodePublication{Volume: id, Staging: "/staging/" + id, Target: podPath(id, pod), Block: id == "block"}
}

// harness is a world with a daemon, in a bubble in which hours pass at once.
type harness struct {
	*testing.T
	*world
	node *Node
}

func inWorld(t *testing.T, test func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{T: t, world: newWorld(t)}
		for _, target := range []string{targetA, targetB} {
			h.portals[target], h.luns[target] = portal, map[int]*lun{}
		}
		for _, id := range kinds[1:] {
			a := staging(id).Attachment
			h.luns[a.Target][a.LUN] = &lun{serial: a.Serial, size: 1 << 30}
		}
		h.lunOf("number").serial, h.lunOf("number").wwid = "2a8c", numbersWWID
		h.node = h.start()
		defer func() { h.end(h.node, t.Failed()) }()
		test(h)
	})
}

// lunOf returns the volume on its array.
func (h *harness) lunOf(id string) *lun {
	a := staging(id).Attachment
	return h.luns[a.Target][a.LUN]
}

// restart starts another daemon. kill lets no running call of the old one have an effect.
func (h *harness) restart(kill bool) {
	h.end(h.node, kill)
	h.node = h.start()
	synctest.Wait()
}

// within bounds a call, as the kubelet does.
func (h *harness) bounded() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	h.Cleanup(cancel)
	return ctx
}

func (h *harness) stage(id string) error      { return h.node.Stage(h.bounded(), staging(id)) }
func (h *harness) unstage(id string) error    { return h.node.Unstage(h.bounded(), id, "/staging/"+id) }
func (h *harness) publish(id, p string) error { return h.node.Publish(h.bounded(), publication(id, p)) }
func (h *harness) unpublish(id, p string) error {
	return h.node.Unpublish(h.bounded(), id, podPath(id, p))
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// clean fails the test if anything is left on the node.
func (h *harness) clean() {
	h.Helper()
	if left := h.leftovers(); len(left) > 0 {
		h.Errorf("left on the node: %s", strings.Join(left, ", "))
	}
}

// pass lets time pass.
func (h *harness) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func stats(h *harness, id, pod string) (volume.Stats, error) {
	return h.node.Stats(h.bounded(), id, podPath(id, pod))
}
