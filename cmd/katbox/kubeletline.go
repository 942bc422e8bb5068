package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/lifespan"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// autoLine derives the kubelet's line from where the kubelet's files and the images of containers are.
const autoLine = "auto"

// imageTries bounds how often two file systems are measured to tell whether they are one that others write to.
const imageTries = 20

// limits returns how much of the working directory's file system should stay free. The daemon
// cannot read the kubelet's configuration, so it assumes the defaults if the kubelet watches that
// file system: for its own files (nodefs), or for the images of containers (imagefs).
func (i *instance) limits() (lifespan.Limits, error) {
	l := lifespan.Limits{Headroom: i.o.headroom, Burst: lifespan.DefaultBurst}
	nodefs, err := mount.SameFileSystem(i.o.workdir, i.o.podsDir())
	if err != nil {
		return l, fmt.Errorf("--kubelet-line %s: %w", i.o.kubeletLine, err)
	}
	imagefs := false
	if nodefs {
		i.dir.SetBeside(i.o.podsDir())
	} else if imagefs, err = onDiskOf("/", i.o.workdir); err != nil {
		return l, fmt.Errorf("--kubelet-line %s: %w", i.o.kubeletLine, err)
	}
	switch {
	case i.o.kubeletLine != autoLine:
		l.Line, _ = lifespan.ParseLine(i.o.kubeletLine) // parse has checked it
	case nodefs, imagefs:
		l.Line = lifespan.DefaultLine
	}
	space, err := i.dir.Space()
	if err != nil {
		return l, err
	}
	if err := l.Check(space); err != nil {
		return l, fmt.Errorf("--kubelet-line %s: %w: it is far too high", i.o.kubeletLine, err)
	}
	is := l.Pressure(space, volume.Size{})
	i.log.Info("free space to keep", "kubeletLine", l.Line.String(), "nodefs", nodefs, "imagefs", imagefs,
		"lineBytes", is.Line.Bytes, "floorBytes", is.Floor.Bytes, "wantedBytes", is.Wanted.Bytes,
		"freeBytes", is.Of.Free.Bytes, "totalBytes", is.Of.Total.Bytes)
	return l, nil
}

// onDiskOf reports whether a directory is on the disk that has the files of a container's root. Where that is an overlay, as
// of most runtimes, the mount table does not say which disk that is, and statfs(2) shows the numbers of the upper
// layer's: it is the same one if nothing was written to only one of the two between three looks. Two disks of the same size
// may have as much free by chance; then Katbox keeps more free than it has to.
func onDiskOf(root, dir string) (bool, error) {
	upper, err := kernel.Statfs(root)
	if err != nil {
		return false, fmt.Errorf("statfs %s: %w", root, err)
	}
	if upper.Type != unix.OVERLAYFS_SUPER_MAGIC {
		return mount.SameFileSystem(root, dir)
	}
	for range imageTries {
		var looks [3]unix.Statfs_t
		for i, path := range []string{dir, root, dir} {
			if looks[i], err = kernel.Statfs(path); err != nil {
				return false, fmt.Errorf("statfs %s: %w", path, err)
			}
		}
		before, between, after := looks[0], looks[1], looks[2]
		if before.Blocks != between.Blocks || before.Bsize != between.Bsize {
			return false, nil
		}
		if before.Bfree == after.Bfree && before.Ffree == after.Ffree {
			return between.Bfree == before.Bfree && between.Ffree == before.Ffree, nil
		}
	}
	return false, nil // it is written to all the time
}
