package main

import (
	"errors"
	"os"
	"testing"

	"github.com/katbox/katbox/soak/internal/launch"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	good := []string{"--dir", dir, "--daemon", self}
	for _, half := range []string{"run", "check"} {
		if o, err := parseOptions(append([]string{half}, good...)); err != nil || o.half != half {
			t.Errorf("%s: %+v, %v", half, o, err)
		}
	}
	for _, bad := range [][]string{
		good,
		append([]string{"walk"}, good...),
		append([]string{"run", "check"}, good...),
		append([]string{"run", "--odd"}, good...),
		{"run", "--daemon", self},
		{"run", "--dir", dir + "/missing", "--daemon", self},
		{"run", "--dir", dir, "--daemon", self + "-missing"},
	} {
		if o, err := parseOptions(bad); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%q: %+v, %v; want wrong usage", bad, o, err)
		}
	}
}
