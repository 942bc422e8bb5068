package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// threadLimit returns how many threads the cgroups allow to the process and its
// neighbours, 0 for no limit. In a privileged container, which sees the pod's cgroup, it is
// the pod's limit. root is "/".
func threadLimit(root fs.FS) (int, error) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, err
	}
	limit := math.MaxInt
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, with neither number nor controllers in version 2.
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			return 0, fmt.Errorf("/proc/self/cgroup has the line %q", line)
		}
		var top string
		switch {
		case fields[1] == "pids":
			top = "sys/fs/cgroup/pids"
		case fields[0] == "0":
			top = "sys/fs/cgroup"
		default:
			continue
		}
		// The limits of the groups above apply as well. If the container sees its own group
		// as the top, the path does not lead to it.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			most, err := readLimit(root, path.Join(top, group, "pids.max"))
			if err != nil {
				return 0, err
			}
			limit = min(limit, most)
			if group == "/" {
				break
			}
		}
	}
	if limit == math.MaxInt {
		return 0, nil
	}
	return limit, nil
}

// readLimit reads a pids.max; math.MaxInt if there is none.
func readLimit(root fs.FS, file string) (int, error) {
	content, err := fs.ReadFile(root, file)
	if errors.Is(err, os.ErrNotExist) {
		return math.MaxInt, nil
	}
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(content))
	if text == "max" {
		return math.MaxInt, nil
	}
	most, err := strconv.Atoi(text)
	if err != nil || most < 0 {
		return 0, fmt.Errorf("/%s is %q", file, text)
	}
	return max(most, 1), nil
}
