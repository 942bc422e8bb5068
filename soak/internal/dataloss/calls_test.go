package dataloss

import (
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
)

// wrongTarget: an unpublish names a target where the volume is not. It stays
// published where it is.
func wrongTarget(n *node) error {
	v, wrong := n.live(), n.volume()
	wrong.id = v.id
	n.answers(codes.OK, n.unpublish(wrong))
	n.file(filepath.Join(wrong.target, "file"))
	n.is(n.unpublish(wrong) != nil, "the unpublish of a target with files in it is answered with OK")
	n.passDeadline()
	n.isPublished(v)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(v)
}

// othersTarget: an unpublish names the target of another pod, once with the ID
// of a volume that is published and once with one that nobody knows.
func othersTarget(n *node) error {
	v, other, unknown := n.live(), n.live(), n.volume()
	for _, id := range []string{v.id, unknown.id} {
		n.answers(codes.Aborted, n.unpublish(vol{id: id, target: other.target}))
	}
	n.passDeadline()
	n.isPublished(v)
	n.isPublished(other)
	if err := n.lost(); err != nil {
		return err
	}
	n.restart()
	n.isPublished(other)
	if err := n.ends(v); err != nil {
		return err
	}
	return n.ends(other)
}

// noParent: a publish comes when the pod's directory is gone already. It fails,
// and what the volume had stays: nothing, or files until its deadline.
func noParent(n *node) error {
	fresh := n.volume()
	n.try(os.RemoveAll(filepath.Join(n.layout.Pods(), fresh.pod)))
	n.answers(codes.Internal, n.publish(fresh))
	n.is(!exists(filepath.Dir(fresh.data)), "a data directory is left of a publish that failed")

	v := n.whileRetained(func(v vol) error {
		n.try(os.RemoveAll(filepath.Join(n.layout.Pods(), v.pod)))
		n.answers(codes.Internal, n.publish(v))
		_, err := os.Stat(v.file())
		return err
	})
	for _, pod := range []string{fresh.pod, v.pod} {
		n.is(!exists(filepath.Join(n.layout.Pods(), pod)), "the directory of pod %s was made again", pod)
	}
	n.expires(v)
	return n.lost()
}
