package quota

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// Range is a range of project IDs: Size of them from First on.
type Range struct{ First, Size uint32 }

// DefaultRange is far from the IDs that the kubelet takes, from 1048577 on, and from those that
// administrators and container engines count up from 1.
var DefaultRange = Range{First: 1258291200, Size: 1 << 24}

// LocalRange is for the volumes of pools on the node's disks. It has no ID of the default one: a pool may be on the
// working directory's file system.
var LocalRange = Range{First: DefaultRange.First + DefaultRange.Size, Size: DefaultRange.Size}

// Overlaps reports whether an ID is in both ranges.
func (r Range) Overlaps(other Range) bool {
	return uint64(r.First) < uint64(other.First)+uint64(other.Size) && uint64(other.First) < uint64(r.First)+uint64(r.Size)
}

// String returns the range as [ParseRange] reads it.
func (r Range) String() string { return fmt.Sprintf("%d+%d", r.First, r.Size) }

// ParseRange reads FIRST+SIZE. Project 0 is what files without a project have, and the
// highest ID means nothing to the kernel.
func ParseRange(text string) (Range, error) {
	first, size, ok := strings.Cut(text, "+")
	from, fromErr := strconv.ParseUint(first, 10, 32)
	count, countErr := strconv.ParseUint(size, 10, 32)
	switch {
	case !ok || fromErr != nil || countErr != nil:
		return Range{}, fmt.Errorf("%q is not FIRST+SIZE, two numbers such as %s", text, DefaultRange)
	case from == 0:
		return Range{}, errors.New("project 0 is that of all other files; begin with a higher one")
	case count == 0:
		return Range{}, errors.New("no project is in it")
	case count > uint64(DefaultRange.Size):
		return Range{}, fmt.Errorf("%d projects are more than %d", count, DefaultRange.Size)
	case from+count > math.MaxUint32:
		return Range{}, fmt.Errorf("the last project would be %d, the highest is %d", from+count-1, uint32(math.MaxUint32-1))
	}
	return Range{First: uint32(from), Size: uint32(count)}, nil
}

func (r Range) has(id uint32) bool { return id >= r.First && id-r.First < r.Size }

// Reserved returns the IDs that the files projects (ID:PATH) and projid (NAME:ID) in a directory
// have, as those in /etc. A missing file has none.
func Reserved(etc string) (ids []uint32, err error) {
	for _, file := range []struct {
		name  string
		field int
	}{{"projects", 0}, {"projid", 1}} {
		opened, err := os.Open(etc + "/" + file.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the projects that are reserved: %w", err)
		}
		defer opened.Close()
		lines := bufio.NewScanner(opened)
		for lines.Scan() {
			fields := strings.SplitN(lines.Text(), ":", 2)
			if len(fields) != 2 {
				continue
			}
			if id, err := strconv.ParseUint(strings.TrimSpace(fields[file.field]), 10, 32); err == nil {
				ids = append(ids, uint32(id))
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("read the projects that are reserved: %s: %w", file.name, err)
		}
	}
	return ids, nil
}
