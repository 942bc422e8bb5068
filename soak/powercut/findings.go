package main

import (
	"fmt"
	"io"

	"github.com/katbox/katbox/soak/internal/local"
)

// mostTold is how many violations are told in full. One that has a single cause
// may befall every volume.
const mostTold = 10

// findings are the violations, which are told as they come.
type findings struct {
	out   io.Writer
	total int
}

// add tells a violation, and the story of the volume that it befell, if it is one.
func (f *findings) add(what string, v *follower) {
	f.total++
	if f.total > mostTold {
		return
	}
	fmt.Fprintf(f.out, "VIOLATION: %s\n", what)
	if v == nil {
		return
	}
	fmt.Fprintf(f.out, "  volume %s, %s, treatment %s\n", v.volume, v.ID, v.treatment)
	for _, e := range v.Told() {
		fmt.Fprintf(f.out, "    %s\n", e)
	}
}

// addLocal tells a violation of what was promised of local volumes.
func (f *findings) addLocal(v local.Violation) {
	f.add("local volumes: "+v.What, nil)
	if f.total > mostTold {
		return
	}
	for _, e := range v.Told {
		fmt.Fprintf(f.out, "    %s\n", e)
	}
}
