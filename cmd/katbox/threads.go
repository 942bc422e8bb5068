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
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// threadLimit returns how many threads the cgroups allow to the process and its neighbours, 0 for
// no limit. A privileged container sees the limit of its pod. root is "/".
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
		// The limits of the groups above apply as well. If the container sees its own group as the
		// top, the path does not lead to it.
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

// timerSlack is by how much the kernel may delay the timers of the daemon's threads, to wake
// threads together. While a thread is in fsync, Go's sysmon wakes every 20 to 75 µs. That was 8 to
// 12 % of the daemon's CPU; with the slack it is 4 %. No wait of the daemon is shorter than 1 ms,
// and calls do not take longer.
const timerSlack = time.Millisecond

// setTimerSlack sets the timer slack of all threads of this process. It needs CAP_SYS_NICE.
func setTimerSlack(slack time.Duration) error {
	seen := map[string]bool{}
	// A new thread inherits the slack of the thread that makes it. The loop ends when a pass finds
	// no thread that was made meanwhile.
	for before := -1; len(seen) > before; {
		before = len(seen)
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			if seen[thread.Name()] {
				continue
			}
			seen[thread.Name()] = true
			if err := setSlack(thread.Name(), slack); err != nil {
				return err
			}
		}
	}
	return nil
}

// setSlack sets the slack of one thread. A thread that has ended is no error.
func setSlack(thread string, slack time.Duration) error {
	f, err := kernel.Open(slackFile(thread), os.O_WRONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.FormatInt(slack.Nanoseconds(), 10))
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// slackFile returns the file of a thread's slack, which does not exist below task.
func slackFile(thread string) string { return "/proc/" + thread + "/timerslack_ns" }
