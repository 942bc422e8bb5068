package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestAgain(t *testing.T) {
	full, broken := fmt.Errorf("write: %w", unix.ENOSPC), errors.New("broken")
	for name, test := range map[string]struct {
		outcomes []error // of the tries, in turn
		makeRoom error
		want     error
		rooms    int // how often room was to be made
	}{
		"success":              {outcomes: []error{nil}},
		"another error":        {outcomes: []error{broken}, want: broken},
		"room after once":      {outcomes: []error{full, nil}, rooms: 1},
		"room after thrice":    {outcomes: []error{full, full, full, nil}, rooms: 3},
		"no room":              {outcomes: slices.Repeat([]error{full}, mostTries), want: volume.ErrNoSpace, rooms: mostTries - 1},
		"broken the next time": {outcomes: []error{full, broken}, want: broken, rooms: 1},
		"no room can be made":  {outcomes: []error{full}, makeRoom: broken, want: volume.ErrNoSpace, rooms: 1},
	} {
		t.Run(name, func(t *testing.T) {
			tries, rooms := 0, 0
			err := again(func() error { tries++; return test.outcomes[tries-1] }, func() error { rooms++; return test.makeRoom })
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if tries != len(test.outcomes) || rooms != test.rooms {
				t.Errorf("%d tries with room made %d times, want %d and %d", tries, rooms, len(test.outcomes), test.rooms)
			}
		})
	}
}
