package dataloss

import (
	"os"
	"path/filepath"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/internal/workload"
)

// killedWhileBusy: the daemon is killed when an unmount has failed.
func killedWhileBusy(n *node) error {
	return unmountWhileBusy(n, n.restart)
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

// recordsGone: somebody removed the records while the daemon was down. What is
// mounted is published, and nobody can say how old the rest is.
func recordsGone(n *node) error {
	running, v := n.live(), n.live()
	n.try(n.unpublish(v))
	n.kill()
	if !exists(v.data) { // so slow a machine that it has expired
		n.expendable(v)
	}
	began := time.Now()
	n.try(os.Rename(filepath.Join(n.layout.Work, ".katbox.db"), filepath.Join(n.layout.Work, ".old.db")))
	n.start()
	if err := n.lostSince(began); err != nil {
		return err
	}
	n.expires(v)
	n.passDeadline()
	n.isPublished(running)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(running)
}

// secondDaemon: another daemon is started on the same working directory.
func secondDaemon(n *node) error {
	running := n.live()
	other := n.layout
	other.Socket += "2"
	second := n.newDaemon(other)
	if err := second.Start(n.t.Context()); err == nil {
		second.Kill()
		n.t.Error("two daemons work in the same directory")
	}
	n.passDeadline()
	n.isPublished(running)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(running)
}

// podMoved: the directory of a pod is gone from where the kubelet has it, with
// what is mounted in there. One that is gone for good shows that the daemon has
// looked.
func podMoved(n *node) error {
	moved, gone := n.live(), n.live()
	pods := n.layout.Pods()
	n.kill()
	n.settings.OrphanGrace = workload.Duration(100 * time.Millisecond)
	n.daemon = n.newDaemon(n.layout)
	n.try(os.Rename(filepath.Join(pods, moved.pod), filepath.Join(n.layout.Kubelet, "moved")))
	n.try(host.Unmount(gone.target), os.RemoveAll(filepath.Join(pods, gone.pod)))
	n.start()
	n.expires(gone)
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.try(os.Rename(filepath.Join(n.layout.Kubelet, "moved"), filepath.Join(pods, moved.pod)))
	n.isPublished(moved)
	return n.ends(moved)
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
