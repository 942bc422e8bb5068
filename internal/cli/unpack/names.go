package unpack

import (
	"fmt"
	"strings"
)

// mostElements bounds how deep a file may be. The node archives no path that is longer than 64 KiB.
const mostElements = 40_000

// split takes a name of the archive apart. A slash at its end is that of a directory.
func split(name string) ([]string, error) {
	elements := strings.Split(strings.TrimSuffix(name, "/"), "/")
	if len(elements) > mostElements {
		return nil, fmt.Errorf("it has %d elements: %w", len(elements), ErrUnsafe)
	}
	for _, e := range elements {
		switch e {
		case "", ".", "..":
			return nil, fmt.Errorf("it is absolute or has an element %q: %w", e, ErrUnsafe)
		}
	}
	return elements, nil
}
