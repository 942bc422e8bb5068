package dataloss

import (
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/soak/internal/host"
)

// mountOnData: somebody mounted something on a retained data directory.
func mountOnData(n *node) error {
	return n.mountedOn(func(v vol) string { return v.data })
}

// mountOnPod: the same with the directory that it is in.
func mountOnPod(n *node) error {
	return n.mountedOn(func(v vol) string { return filepath.Dir(v.data) })
}

// mountedOn lets a directory be covered while its volume is retained. The daemon
// leaves it alone until it is bare again.
func (n *node) mountedOn(directory func(vol) string) error {
	foreign := filepath.Join(n.ground, "foreign")
	n.file(filepath.Join(foreign, "file"))
	v := n.whileRetained(func(v vol) error {
		// It looks like the volume.
		n.file(filepath.Join(foreign, v.id, "file"))
		return host.Bind(foreign, directory(v))
	})
	for range 2 {
		n.passDeadline()
		if err := n.lost(); err != nil {
			return err
		}
		n.says("not a data directory")
		n.is(n.mounted(directory(v)), "what somebody mounted there is gone")
		n.restart()
	}
	n.kill()
	n.try(host.Unmount(directory(v)))
	n.start()
	n.expires(v)
	return n.lost()
}

// dataMountedElsewhere: somebody has mounted retained data where they look at it.
func dataMountedElsewhere(n *node) error {
	look := filepath.Join(n.ground, "look")
	n.try(os.Mkdir(look, 0o755))
	v := n.whileRetained(func(v vol) error { return host.Bind(v.data, look) })
	n.precious[v.file()] = filepath.Join(v.target, "file")
	for range 2 {
		n.passDeadline()
		if err := n.lost(); err != nil {
			return err
		}
		n.restart()
	}
	n.kill()
	n.try(host.Unmount(look))
	n.start()
	n.expires(v)
	return n.lost()
}

// subpathMounted: the kubelet unpublished a volume, and has not unmounted a
// directory in it that a container has by itself.
func subpathMounted(n *node) error {
	v := n.live()
	part := filepath.Join(v.data, "part")
	subpath := filepath.Join(n.layout.Pods(), v.pod, "volume-subpaths/scratch/work/0")
	n.file(filepath.Join(part, "file"))
	n.try(os.MkdirAll(subpath, 0o750), host.Bind(part, subpath))
	n.answers(codes.OK, n.unpublish(v))
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	delete(n.precious, filepath.Join(part, "file"))
	n.kill()
	n.try(host.Unmount(subpath))
	n.start()
	n.expires(v)
	return n.lost()
}

// volumeInside: the volume of a running pod is mounted inside a retained one.
func volumeInside(n *node) error {
	v, running := n.live(), n.live()
	inside := filepath.Join(v.data, "inside")
	n.try(os.Mkdir(inside, 0o755), host.Bind(running.data, inside))
	n.answers(codes.OK, n.unpublish(v))
	n.expires(v)
	n.passDeadline()
	n.isPublished(running)
	return n.lost()
}

// mountMoved: the directories before the target have another name, so that the
// mount is not where it was. That nothing is mounted on the target proves nothing.
func mountMoved(n *node) error {
	v := n.live()
	volumes := filepath.Join(n.layout.Pods(), v.pod, "volumes")
	n.try(os.Rename(volumes, volumes+".moved"))
	n.answers(codes.Aborted, n.unpublish(v))
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.try(os.Rename(volumes+".moved", volumes))
	return n.ends(v)
}

// mountMovedAndKilled: the same with a crash in between, and an empty directory
// as the target. A start takes the mount for another target, so that either
// answer will do, as long as the data stays.
func mountMovedAndKilled(n *node) error {
	v := n.live()
	volumes := filepath.Join(n.layout.Pods(), v.pod, "volumes")
	n.try(os.Rename(volumes, volumes+".moved"), os.MkdirAll(v.target, 0o750))
	n.answers(codes.Aborted, n.unpublish(v))
	n.restart()
	_ = n.unpublish(v)
	n.passDeadline()
	return n.lost()
}

// targetCovered: something is mounted over the directory that the target is in.
func targetCovered(n *node) error {
	v := n.live()
	over := filepath.Join(n.layout.Pods(), v.pod, "volumes")
	n.try(host.Bind(n.foreign.Directory(0), over))
	n.answers(codes.Aborted, n.unpublish(v))
	n.restart()
	n.passDeadline()
	if err := n.lost(); err != nil {
		return err
	}
	n.try(host.Unmount(over))
	return n.ends(v)
}

// foreignTarget: something is mounted on the target that is nobody's volume.
func foreignTarget(n *node) error {
	v := n.volume()
	n.try(os.Mkdir(v.target, 0o750), host.Bind(n.foreign.Directory(0), v.target))
	n.answers(codes.Aborted, n.publish(v))
	n.answers(codes.Aborted, n.unpublish(v))
	n.passDeadline()
	n.is(n.mounted(v.target), "what somebody mounted there is gone")
	return n.lost()
}
