package reader

import (
	"net/url"
	"strings"
)

const (
	// longestPath is how long a path may be in a request.
	longestPath = 4096
	// mountName is the directory in a volume on which faults mount something.
	mountName = "soak-mount"
)

// refOf encodes a path for a request.
func refOf(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}

// isMount reports whether a path leads to where something is mounted at times.
func (s *subject) isMount(path string) bool {
	return path == mountName || strings.HasPrefix(path, mountName+"/")
}
