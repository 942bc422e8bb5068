package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestUntilTold: a machine that is too slow for the usual lifespan gets one longer one, and is told so.
func TestUntilTold(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		lifespan time.Duration
		ends     []error
		played   []time.Duration
	}{
		{usualLifespan, []error{nil}, []time.Duration{usualLifespan}},
		{usualLifespan, []error{broken}, []time.Duration{usualLifespan}},
		{usualLifespan, []error{fmt.Errorf("x: %w", errSlow), nil}, []time.Duration{usualLifespan, slowLifespan}},
		{usualLifespan, []error{errSlow, errSlow}, []time.Duration{usualLifespan, slowLifespan}},
		{shortestLifespan, []error{errSlow}, []time.Duration{shortestLifespan}},
	} {
		var played []time.Duration
		var says strings.Builder
		err := untilTold(options{lifespan: c.lifespan}, &says, func(o options) error {
			played = append(played, o.lifespan)
			return c.ends[len(played)-1]
		})
		if !errors.Is(err, c.ends[len(c.ends)-1]) || !slices.Equal(played, c.played) || (says.Len() > 0) != (len(played) > 1) {
			t.Errorf("%s and %v: played %v, %v, said %q", c.lifespan, c.ends, played, err, says.String())
		}
	}
}
