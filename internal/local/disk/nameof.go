package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/attach"
)

// NameOf returns whose mount a line of the mount table is: the name of the volume whose directory, disk or disk's node
// it shows. It looks at sysfs alone, and so tells it also when the pool's disk is away. Names of other things that
// look like a volume's are returned, too: the caller compares.
func NameOf(m attach.Mount) (name string, ok bool) {
	if name, ok := nameIn(strings.TrimSuffix(m.Root, removedMark)); ok {
		return name, true
	}
	device, ok := nodeOf(m)
	if !ok {
		link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(m.Device), unix.Minor(m.Device)))
		if err != nil {
			return "", false
		}
		device = filepath.Base(link)
	}
	content, err := readBacking(device)
	if err != nil {
		return "", false
	}
	dir, file := filepath.Split(backingFile(content))
	if file != imageName {
		return "", false
	}
	return nameIn(filepath.Clean(dir))
}

// nameIn returns the name of a volume in a path that leads into its directory.
func nameIn(path string) (name string, ok bool) {
	elements := strings.Split(path, "/")
	for i := len(elements) - 2; i > 0; i-- {
		if elements[i] == volumesName && checkName(elements[i+1]) == nil {
			return elements[i+1], true
		}
	}
	return "", false
}
