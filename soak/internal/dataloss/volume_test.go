package dataloss

import (
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/testbed"
)

// vol is a volume of a pod, published or not.
type vol struct{ id, pod, target, data string }

// file is the one that a pod writes into its volume.
func (v vol) file() string { return filepath.Join(v.data, "file") }

// volume is a new volume of a new pod, known to nobody.
func (n *node) volume() vol {
	n.t.Helper()
	n.volumes++
	return n.volumeOf(fmt.Sprintf("00000000-0000-4000-8000-%012x", n.volumes), fmt.Sprintf("csi-%064x", n.volumes))
}

// volumeOf is a volume with the given names. The kubelet has made the directories
// that lead to its target.
func (n *node) volumeOf(pod, id string) vol {
	n.t.Helper()
	v := testbed.Volume{Kubelet: n.layout.Kubelet, Work: n.layout.Work, Pod: pod, Name: "scratch", ID: id}
	n.try(v.MakeTargetDir())
	return vol{id: id, pod: pod, target: v.Target(), data: v.Data()}
}

func (n *node) publish(v vol) error {
	_, err := n.client.NodePublishVolume(n.t.Context(), testbed.Publish(v.id, v.target, v.pod, nil))
	return err
}

func (n *node) unpublish(v vol) error {
	_, err := n.client.NodeUnpublishVolume(n.t.Context(), testbed.Unpublish(v.id, v.target))
	return err
}

// live is a published volume, whose file has to stay.
func (n *node) live() vol {
	n.t.Helper()
	v := n.volume()
	n.try(n.publish(v))
	n.write(v)
	return v
}

// write is what a pod does.
func (n *node) write(v vol) {
	n.t.Helper()
	n.file(filepath.Join(v.target, "file"))
	// It is looked for where the driver keeps it, mounted or not.
	delete(n.precious, filepath.Join(v.target, "file"))
	n.precious[v.file()] = filepath.Join(v.target, "file")
}

// expendable says that the volume may go.
func (n *node) expendable(v vol) { delete(n.precious, v.file()) }

// passDeadline waits until the driver would have deleted all that is retained so
// far: a volume that is retained later is gone.
func (n *node) passDeadline() {
	n.t.Helper()
	v := n.volume()
	n.try(n.publish(v), n.unpublish(v))
	n.expires(v)
}

// expires waits until a retained volume is gone.
func (n *node) expires(v vol) {
	n.t.Helper()
	n.expendable(v)
	n.eventually(v.data+" has expired", func() bool { return !exists(v.data) })
}

// isPublished checks that the pod still has its volume.
func (n *node) isPublished(v vol) {
	n.t.Helper()
	content, err := testbed.ReadUnforked(filepath.Join(v.target, "file"))
	n.is(n.mounted(v.target) && err == nil && string(content) == n.precious[v.file()],
		"the pod does not have its volume any more: file %q, %v", content, err)
}

// ends unpublishes a volume, which then is retained and expires as any other.
func (n *node) ends(v vol) error {
	n.t.Helper()
	began := time.Now()
	n.answers(codes.OK, n.unpublish(v))
	n.is(!exists(v.target), "the target is still there")
	if err := n.lostSince(began); err != nil {
		return err
	}
	n.expires(v)
	return nil
}
