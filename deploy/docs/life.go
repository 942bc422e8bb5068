package main

import (
	"fmt"

	"github.com/katbox/katbox/internal/model/volume"
)

// A stretch is a part of a volume's life in the picture.
type stretch struct {
	phase  volume.Phase
	width  int
	colour string
	label  string
	above  string   // what happens at its beginning
	below  []string // what people can do in it
	anchor string   // where the text above is, from the beginning
}

var life = []stretch{
	{phase: volume.Published, width: 290, colour: green, label: "the pod runs", above: "the pod starts", anchor: "start",
		below: []string{"a directory in the pod,", "as an emptyDir", "kubectl exec"}},
	{phase: volume.Retained, width: 420, colour: blue, label: "the files stay: the lifespan", above: "the pod is gone", anchor: "middle",
		below: []string{"kubectl katbox list, ls, cat, tail, cp, debug", "later: pin", "sooner: release, rm, or a disk that fills up"}},
	{phase: volume.Deleting, width: 150, colour: grey, label: "gone", above: "the deadline", anchor: "middle",
		below: []string{"kubectl katbox", "list --gone", "says when and why"}},
}

// lifePicture draws a volume's life. It fails if the daemon's own table of phases does not allow that life.
func lifePicture() (string, error) {
	d := newDrawing(900, 190, "A volume's life: the pod runs, the files stay for the lifespan, they are gone")
	x, before := 20, volume.Unknown
	for _, s := range life {
		if !before.CanBecome(s.phase) && !viaOne(before, s.phase) {
			return "", fmt.Errorf("a volume that is %s does not become %s: the picture of its life is wrong", before, s.phase)
		}
		before = s.phase
		d.line(x, 34, x, 110, ink)
		d.text(x, 26, s.anchor, ink, s.above)
		d.bar(x, 44, s.width, s.colour, s.label)
		d.text(x+s.width/2, 104, "middle", grey, s.phase.String())
		for i, line := range s.below {
			d.text(x+s.width/2, 130+20*i, "middle", ink, line)
		}
		x += s.width
	}
	return d.end(), nil
}

// viaOne reports whether one phase leads to another one by a single phase between them, which the picture leaves out.
func viaOne(from, to volume.Phase) bool {
	for between := volume.Unknown; between <= volume.Deleting; between++ {
		if from.CanBecome(between) && between.CanBecome(to) {
			return true
		}
	}
	return false
}
