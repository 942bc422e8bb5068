package main

import (
	"fmt"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/mount"
)

// autoLine derives the kubelet's line from where the kubelet's files are.
const autoLine = "auto"

// limits returns how much of the working directory's file system should stay free. The
// daemon cannot read the kubelet's configuration, so it assumes the defaults if the
// kubelet watches that file system.
func (i *instance) limits() (lifespan.Limits, error) {
	l := lifespan.Limits{Headroom: i.o.headroom}
	if i.o.kubeletLine == autoLine {
		shared, err := mount.SameFileSystem(i.o.workdir, i.o.podsDir())
		if err != nil {
			return l, fmt.Errorf("--kubelet-line auto: %w", err)
		}
		if shared {
			l.Line = lifespan.DefaultLine
		}
	} else {
		l.Line, _ = lifespan.ParseLine(i.o.kubeletLine) // parse has checked it
	}
	space, err := i.dir.Space()
	if err != nil {
		return l, err
	}
	if err := l.Check(space); err != nil {
		return l, fmt.Errorf("--kubelet-line %s: %w: it is far too high", i.o.kubeletLine, err)
	}
	is := l.Pressure(space)
	i.log.Info("free space to keep", "kubeletLine", l.Line.String(),
		"lineBytes", is.Line.Bytes, "floorBytes", is.Floor.Bytes, "wantedBytes", is.Wanted.Bytes,
		"freeBytes", space.Free.Bytes, "totalBytes", space.Total.Bytes)
	return l, nil
}
