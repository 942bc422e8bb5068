package main

import (
	"fmt"
	"io"

	"github.com/katbox/katbox/soak/story"
)

// mostTold is how many violations are told in full. One that has a single cause
// may befall every volume.
const mostTold = 10

// findings are the violations, which are told as they come.
type findings struct {
	out   io.Writer
	total int
}

// add tells a violation, and what happened to what it befell, if it is a single volume.
func (f *findings) add(what string, told []story.Event) {
	f.total++
	if f.total > mostTold {
		return
	}
	fmt.Fprintf(f.out, "VIOLATION: %s\n", what)
	for _, e := range told {
		fmt.Fprintf(f.out, "    %s\n", e)
	}
}

// befell tells a violation of what was promised of a volume, which may be one that is not followed.
func (f *findings) befell(v *follower, what string) {
	if v == nil {
		f.add(what, nil)
		return
	}
	f.add(fmt.Sprintf("%s\n  volume %s, %s, treatment %s", what, v.volume, v.ID, v.treatment), v.Told())
}
