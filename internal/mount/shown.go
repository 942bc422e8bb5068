package mount

import (
	"os"
	"path/filepath"
	"strings"
)

// handles is the directory of the handles of this process. A path that begins with
// one leads to what is open, whatever has been mounted over its own path.
const handles = "/proc/self/fd/"

// shown is a path as errors name it: a handle's number tells people nothing.
type shown string

// String puts the path of what is open in the place of its handle.
func (p shown) String() string {
	below, ok := strings.CutPrefix(string(p), handles)
	if !ok {
		return string(p)
	}
	number, rest, _ := strings.Cut(below, "/")
	open, err := os.Readlink(handles + number)
	if err != nil {
		return string(p)
	}
	return filepath.Join(open, rest)
}
