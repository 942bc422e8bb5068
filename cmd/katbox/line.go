package main

import (
	"fmt"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lifespan"
	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/scratch"
)

// autoLine has the kubelet's line follow from where the kubelet's files are.
const autoLine = "auto"

// limits says how much of the working directory's file system should stay free. What
// the kubelet is configured with cannot be read from here, so that its defaults are
// assumed where it looks at that file system.
func limits(o options, dir *scratch.Dir, podsDir string, log logr.Logger) (lifespan.Limits, error) {
	l := lifespan.Limits{Headroom: o.headroom}
	if o.kubeletLine == autoLine {
		shared, err := mount.SameFileSystem(o.workdir, podsDir)
		if err != nil {
			return l, fmt.Errorf("--kubelet-line auto: %w", err)
		}
		if shared {
			l.Line = lifespan.DefaultLine
		}
	} else {
		l.Line, _ = lifespan.ParseLine(o.kubeletLine) // it was checked
	}
	space, err := dir.Space()
	if err != nil {
		return l, err
	}
	if err := l.Check(space); err != nil {
		return l, fmt.Errorf("--kubelet-line %s: %w: it is far too high", o.kubeletLine, err)
	}
	is := l.Pressure(space)
	log.Info("free space to keep", "kubeletLine", l.Line.String(), "lineBytes", is.Line.Bytes, "floorBytes", is.Floor.Bytes,
		"wantedBytes", is.Wanted.Bytes, "freeBytes", space.Free.Bytes, "totalBytes", space.Total.Bytes)
	return l, nil
}
