package main

import (
	"sync"
	"time"
)

// consumption is what the daemon uses over all its processes, of which one runs
// at a time. The zero value is ready.
type consumption struct {
	mu      sync.Mutex
	process *process // the last one
	// ended is the CPU time of the processes before it.
	ended   time.Duration
	peak    int64
	threads int
}

// consumed is the total of a run.
type consumed struct {
	// cpu is the sum over all processes; the others are the highest of any.
	cpu     time.Duration
	peak    int64
	threads int
}

// follow turns to a new process. The one before it has ended.
func (c *consumption) follow(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		c.ended += c.process.cpu()
	}
	c.process = p
}

// look asks what the daemon uses now, with the CPU time of its earlier
// processes. It is false while there is no process.
func (c *consumption) look() (usage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return usage{}, false
	}
	u, err := readUsage(c.process.cmd.Process.Pid)
	select {
	case <-c.process.ended:
		// It may have been a stranger with the same PID.
		return usage{}, false
	default:
	}
	if err != nil {
		return usage{}, false // it is ending
	}
	u.cpu += c.ended
	c.peak = max(c.peak, u.peak)
	c.threads = max(c.threads, u.threads)
	return u, true
}

// total is what the daemon used, once its last process has ended.
func (c *consumption) total() consumed {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := consumed{cpu: c.ended, peak: c.peak, threads: c.threads}
	if c.process != nil {
		t.cpu += c.process.cpu()
	}
	return t
}
