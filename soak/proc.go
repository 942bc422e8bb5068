package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc. Linux gives it to programs in
// hundredths of a second on every architecture that Go knows.
const clockTick = time.Second / 100

// usage is what a process uses.
type usage struct {
	// cpu is the time in user and system mode since its start.
	cpu time.Duration
	// Memory in bytes: rss is all that is in RAM, anonymous what of it is not
	// backed by a file, peak the highest rss so far.
	rss, anonymous, peak int64
	threads              int
}

// readUsage asks the kernel about a process.
func readUsage(pid int) (usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return usage{}, fmt.Errorf("what the daemon uses: %w", err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return usage{}, fmt.Errorf("what the daemon uses: %w", err)
	}
	return parseUsage(string(stat), string(status))
}

// parseUsage reads texts in the formats of /proc/PID/stat and /proc/PID/status.
func parseUsage(stat, status string) (usage, error) {
	cpu, err := cpuTime(stat)
	if err != nil {
		return usage{}, err
	}
	u := usage{cpu: cpu}
	for name, to := range map[string]*int64{"VmRSS": &u.rss, "RssAnon": &u.anonymous, "VmHWM": &u.peak} {
		kib, err := statusNumber(status, name)
		if err != nil {
			return usage{}, err
		}
		*to = kib << 10
	}
	threads, err := statusNumber(status, "Threads")
	u.threads = int(threads)
	return u, err
}

// cpuTime reads the time in user and system mode. The name of the program is in
// parentheses and may contain anything, even blanks and parentheses.
func cpuTime(stat string) (time.Duration, error) {
	const afterName, user, system = 3, 14, 15 // numbered as in proc(5)
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system-afterName {
		return 0, fmt.Errorf("CPU time in /proc/PID/stat: %d fields after the name are too few", len(fields))
	}
	var ticks uint64
	for _, field := range []int{user, system} {
		n, err := strconv.ParseUint(fields[field-afterName], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time in /proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// statusNumber reads one number of /proc/PID/status, without its unit. A process
// that has ended and was not waited for has no memory there.
func statusNumber(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		rest, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0, fmt.Errorf("%s in /proc/PID/status is empty", name)
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s in /proc/PID/status: %w", name, err)
		}
		return n, nil
	}
	return 0, fmt.Errorf("/proc/PID/status has no %s", name)
}
