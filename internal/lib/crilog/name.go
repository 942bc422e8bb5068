package crilog

import (
	"cmp"
	"regexp"
	"strconv"
)

// Name is what the kubelet calls a file of a container's log.
type Name struct {
	// Restart counts the restarts of the container before the one that wrote the file.
	Restart int
	// Rotated is when the kubelet set the file aside, as it is written; empty for the one that the container writes to.
	Rotated string
	// Compressed: the content is compressed by gzip.
	Compressed bool
}

var name = regexp.MustCompile(`^([0-9]{1,9})\.log(\.([0-9]{8}-[0-9]{6})(\.gz)?)?$`)

// ParseName reads the name of a file; ok is false for one that is no log's.
func ParseName(file string) (n Name, ok bool) {
	parts := name.FindStringSubmatch(file)
	if parts == nil {
		return Name{}, false
	}
	restart, err := strconv.Atoi(parts[1])
	return Name{Restart: restart, Rotated: parts[3], Compressed: parts[4] != ""}, err == nil
}

// Compare orders the files of one container: what was written first comes first.
func (n Name) Compare(m Name) int {
	switch {
	case n.Restart != m.Restart:
		return cmp.Compare(n.Restart, m.Restart)
	case n.Rotated == "" || m.Rotated == "":
		return cmp.Compare(m.Rotated, n.Rotated) // what was not rotated is the newest
	}
	return cmp.Compare(n.Rotated, m.Rotated)
}
