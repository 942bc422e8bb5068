package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/katbox/katbox/soak/internal/launch"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"word"}, {"--nothing"}, {"--lifespan", "1s"}, {"--lifespan", "5500ms"}, {"--lifespan", "soon"}, {"--daemon", t.TempDir()},
		{"--readme", filepath.Join(t.TempDir(), "none")},
	} {
		if _, err := parseOptions(args); !errors.Is(err, launch.ErrUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
