package main

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"word"}, {"--nothing"}, {"--lifespan", "1s"}, {"--lifespan", "5500ms"}, {"--lifespan", "soon"}, {"--daemon", t.TempDir()},
		{"--readme", filepath.Join(t.TempDir(), "none")},
	} {
		if _, err := start(args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
