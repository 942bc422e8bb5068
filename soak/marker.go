package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// markerName is the file in each volume that proves that its data is there.
const markerName = "soak-marker"

// markerText is what the marker of a volume contains: nothing that another
// volume could have, by whatever mistake.
func (v *volume) markerText() string { return v.plan.id + " " + v.plan.marker + "\n" }

// presence is what there is of a volume's data.
type presence int

const (
	// whole: the marker is there and right.
	whole presence = iota
	// partial: the directory is there, the marker is not, or it is wrong.
	partial
	// gone: there is nothing.
	gone
)

// look looks for the marker in a directory. The error says what was found
// instead.
func (v *volume) look(dir string) (presence, error) {
	got, err := os.ReadFile(filepath.Join(dir, markerName))
	if err == nil && string(got) == v.markerText() {
		return whole, nil
	}
	if err == nil {
		return partial, fmt.Errorf("marker in %s has %d bytes and says %.100q", dir, len(got), got)
	}
	// The directory is asked after the file. The other way round, data that
	// goes in between would look partial.
	there, statErr := exists(dir)
	switch {
	case statErr != nil:
		return partial, fmt.Errorf("data directory: %w", statErr)
	case there:
		return partial, fmt.Errorf("marker: %w", err)
	default:
		return gone, fmt.Errorf("%s does not exist", dir)
	}
}

// mark puts the marker into a volume that was just published, and checks that
// the target and the data directory show the same files.
func (v *volume) mark() (promise, error) {
	written, other := v.target, v.data
	if v.plan.readOnly {
		err := os.WriteFile(filepath.Join(v.target, "soak-intruder"), nil, 0o644)
		switch {
		case err == nil:
			return writableVolume, errors.New("writing through the target succeeded instead of failing with EROFS")
		case !errors.Is(err, syscall.EROFS):
			return writableVolume, fmt.Errorf("writing through the target did not fail with EROFS: %w", err)
		}
		// What a pod cannot write has to come from outside.
		written, other = v.data, v.target
	}
	if err := os.WriteFile(filepath.Join(written, markerName), []byte(v.markerText()), 0o644); err != nil {
		return lostMarker, fmt.Errorf("write the marker: %w", err)
	}
	if state, err := v.look(other); state != whole {
		return lostMarker, fmt.Errorf("written in %s, but it does not show elsewhere: %w", written, err)
	}
	return "", nil
}
