package dataloss

import (
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/host"
)

// killedWhileBusy: the daemon is killed when an unmount has failed.
func killedWhileBusy(n *node) error {
	v := n.live()
	busy, err := os.Open(filepath.Join(v.target, "file"))
	n.try(err)
	defer busy.Close()
	n.answers(codes.Aborted, n.unpublish(v))
	n.restart()
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.isPublished(v)
	ended := time.Now()
	n.try(busy.Close())
	n.eventually("unmounted without another call", func() bool { return !exists(v.target) })
	if err := n.lostSince(ended); err != nil {
		return err
	}
	n.expires(v)
	return nil
}

// killedAfterUnmount: the daemon is killed when it has unmounted and has not
// noted that. Nobody was told, so the volume waits for its kubelet.
func killedAfterUnmount(n *node) error {
	v := n.live()
	n.kill()
	n.try(host.Unmount(v.target), os.Remove(v.target))
	n.start()
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(v)
}

// killedBeforeDeadline: the daemon is killed again and again while a volume is
// retained. It has its lifespan all the same, and others are not touched.
func killedBeforeDeadline(n *node) error {
	running, v := n.live(), n.live()
	began := time.Now()
	n.try(n.unpublish(v))
	for range 3 {
		n.restart()
		if err := n.lostSince(began); err != nil {
			return err
		}
	}
	n.expires(v)
	n.isPublished(running)
	return n.lost()
}

// killedInDeletion: the daemon is killed when it has moved a volume to the trash.
// By then the volume was published again.
func killedInDeletion(n *node) error {
	v := n.live()
	n.try(n.unpublish(v))
	n.expendable(v)
	n.eventually("expired", func() bool { return !exists(v.data) })
	n.eventually("free to be published again", func() bool { return n.publish(v) == nil })
	n.write(v)
	n.kill()
	trash := filepath.Join(n.layout.Work, ".trash", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "directory")
	n.try(os.MkdirAll(trash, 0o755), os.WriteFile(filepath.Join(trash, "file"), nil, 0o644),
		os.Symlink(n.foreign.Directory(0), filepath.Join(trash, "link")), os.Symlink(v.data, filepath.Join(trash, "again")))
	n.start()
	n.eventually("the trash is empty", func() bool { return len(n.files(".trash/*")) == 0 })
	n.passDeadline()
	n.isPublished(v)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(v)
}
