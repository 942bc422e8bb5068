package unpack

import (
	"fmt"
	"strings"
)

// split takes a name of the archive apart. A slash at its end is that of a directory.
func split(name string) ([]string, error) {
	elements := strings.Split(strings.TrimSuffix(name, "/"), "/")
	for _, e := range elements {
		switch e {
		case "", ".", "..":
			return nil, fmt.Errorf("it is absolute or has an element %q: %w", e, ErrUnsafe)
		}
	}
	return elements, nil
}
