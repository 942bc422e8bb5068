package host

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

// Usage is what a process uses.
type Usage struct {
	// CPU is the time in user and system mode since its start, in steps of a
	// hundredth of a second.
	CPU time.Duration
	// Memory in bytes: RSS is all that is in RAM, Anonymous what of it is not
	// backed by a file, Peak the highest RSS so far.
	RSS, Anonymous, Peak int64
	Threads              int
}

// ReadUsage asks the kernel about a process. It is an error if there is no such
// process, or if it has ended and was not waited for yet.
func ReadUsage(pid int) (Usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, fmt.Errorf("what process %d uses: %w", pid, err)
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return Usage{}, fmt.Errorf("what process %d uses: %w", pid, err)
	}
	u, err := parseUsage(string(stat), string(status))
	if err != nil {
		return Usage{}, fmt.Errorf("what process %d uses: %w", pid, err)
	}
	return u, nil
}

// parseUsage reads texts in the formats of /proc/PID/stat and /proc/PID/status.
func parseUsage(stat, status string) (Usage, error) {
	cpu, err := cpuTime(stat)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{CPU: cpu}
	for name, to := range map[string]*int64{"VmRSS": &u.RSS, "RssAnon": &u.Anonymous, "VmHWM": &u.Peak} {
		kib, err := statusNumber(status, name)
		if err != nil {
			return Usage{}, err
		}
		*to = kib << 10
	}
	threads, err := statusNumber(status, "Threads")
	u.Threads = int(threads)
	return u, err
}

// cpuTime reads the time in user and system mode. The name of the program is in
// parentheses and may contain anything, even blanks and parentheses.
func cpuTime(stat string) (time.Duration, error) {
	const user, system = 14, 15 // numbered as in proc(5)
	return statTime(stat, user, system)
}

// childrenTime reads the same of the children that were waited for.
func childrenTime(stat string) (time.Duration, error) {
	const user, system = 16, 17
	return statTime(stat, user, system)
}

func statTime(stat string, user, system int) (time.Duration, error) {
	const afterName = 3
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
