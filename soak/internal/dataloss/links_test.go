package dataloss

import (
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/host"
)

// linkAsData: a retained data directory was moved, and a symlink is in its place.
func linkAsData(n *node) error {
	return n.replaced(func(v vol) string { return v.data })
}

// linkAsPod: the same with the directory that it is in.
func linkAsPod(n *node) error {
	return n.replaced(func(v vol) string { return filepath.Dir(v.data) })
}

// replaced lets a directory become a symlink while its volume is retained. The
// daemon leaves alone what the link leads to, and the link, and goes on when the
// directory is back.
func (n *node) replaced(directory func(vol) string) error {
	// No rename leaves the mount that the working directory is.
	aside := filepath.Join(n.layout.Work, ".aside")
	v := n.whileRetained(func(v vol) error { return os.Rename(directory(v), aside) })
	dir := directory(v)
	n.file(filepath.Join(aside, "beside"))
	// A link within the working directory leads over no other mount.
	for _, foreign := range []string{filepath.Join(n.ground, "foreign"), filepath.Join(n.layout.Work, ".foreign")} {
		// It is like the volume, and like the directory of its pod.
		n.file(filepath.Join(foreign, "file"))
		n.file(filepath.Join(foreign, filepath.Base(v.data), "file"))
		link, err := filepath.Rel(filepath.Dir(dir), foreign)
		n.try(err)
		// At a start it tries at once what it could not do before.
		n.kill()
		n.try(os.RemoveAll(dir), os.Symlink(link, dir))
		n.start()
		n.passDeadline()
		if err := n.lost(); err != nil {
			return err
		}
		target, err := os.Readlink(dir)
		n.is(err == nil && target == link, "the symlink: %q, %v", target, err)
		n.says("not a data directory")
	}
	n.kill()
	delete(n.precious, filepath.Join(aside, "beside"))
	n.try(os.Remove(dir), os.Rename(aside, dir))
	n.start()
	n.expires(v)
	return n.lost()
}

// linkAsNewPod: a symlink is where the daemon would make the directory of a pod.
func linkAsNewPod(n *node) error {
	v := n.volume()
	n.try(os.Symlink(n.foreign.Directory(0), filepath.Dir(v.data)))
	n.answers(codes.Internal, n.publish(v))
	if err := n.lost(); err != nil {
		return err
	}
	n.is(!n.mounted(v.target), "it is mounted")
	n.answers(codes.OK, n.unpublish(v))
	n.passDeadline()
	return n.lost()
}

// linksInside: a pod may link to whatever it wants.
func linksInside(n *node) error {
	v, running := n.live(), n.live()
	for name, to := range map[string]string{
		"directory": n.foreign.Directory(0), "program": filepath.Join(n.foreign.Directory(0), "below/program"),
		"up": "../../..", "other": running.data, "itself": "itself", "nowhere": "/does/not/exist",
	} {
		n.try(os.Symlink(to, filepath.Join(v.target, name)))
	}
	n.try(n.unpublish(v))
	n.expires(v)
	n.eventually("the trash is empty", func() bool { return len(n.files(".trash/*")) == 0 })
	n.isPublished(running)
	return n.lost()
}

// linkAsTarget: it leads to a directory, and to nothing.
func linkAsTarget(n *node) error {
	for _, to := range []string{n.foreign.Directory(0), filepath.Join(n.ground, "nothing")} {
		v := n.volume()
		n.try(os.Symlink(to, v.target))
		n.answers(codes.Internal, n.publish(v))
		n.is(!exists(v.data), "a data directory is left of a publish that failed")
		n.answers(codes.OK, n.unpublish(v))
		n.is(exists(v.target), "the symlink is gone, and it was not the daemon's")
	}
	n.passDeadline()
	n.is(!exists(filepath.Join(n.ground, "nothing")), "the symlink was followed")
	return n.lost()
}

// linkToOtherTarget: after a reboot a target leads to that of another pod.
func linkToOtherTarget(n *node) error {
	v, other := n.live(), n.live()
	n.try(host.Unmount(v.target), os.Remove(v.target), os.Symlink(other.target, v.target))
	n.answers(codes.Internal, n.publish(v))
	n.isPublished(other)
	if err := n.lost(); err != nil {
		return err
	}
	n.answers(codes.OK, n.unpublish(v))
	n.expires(v)
	n.isPublished(other)
	return n.lost()
}

// linkBeforeTarget: the directory that the target is in is a symlink to that of
// another pod.
func linkBeforeTarget(n *node) error {
	other, v := n.live(), n.volume()
	n.try(os.Remove(filepath.Dir(v.target)), os.Symlink(filepath.Dir(other.target), filepath.Dir(v.target)))
	n.answers(codes.Aborted, n.publish(v))
	n.answers(codes.Aborted, n.unpublish(v))
	n.passDeadline()
	n.isPublished(other)
	if err := n.lost(); err != nil {
		return err
	}
	return n.ends(other)
}
