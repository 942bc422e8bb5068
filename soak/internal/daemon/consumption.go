package daemon

import (
	"sync"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

// consumption is what the driver uses over all its processes, of which one runs
// at a time. The zero value is ready.
type consumption struct {
	mu      sync.Mutex
	process *testbed.Process // the last one
	// ended is the CPU time of the processes before it.
	ended time.Duration
	// highest has the peaks of all of them.
	highest host.Usage
}

// follow turns to a new process. The one before it has ended.
func (c *consumption) follow(p *testbed.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		c.ended += cpu(c.process)
	}
	c.process = p
}

// cpu is the CPU time of a process that has ended: what the kernel charged in
// the end, however it died. It is 0 before.
func cpu(p *testbed.Process) time.Duration {
	if !p.Over() {
		return 0
	}
	return p.State().UserTime() + p.State().SystemTime()
}

// look asks what the driver uses now, with the CPU time of its earlier
// processes. It is false while there is no process.
func (c *consumption) look() (host.Usage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return host.Usage{}, false
	}
	u, err := host.ReadUsage(c.process.PID())
	if c.process.Over() || err != nil {
		// It is ending, or the PID is that of a stranger already.
		return host.Usage{}, false
	}
	u.CPU += c.ended
	c.highest.RSS = max(c.highest.RSS, u.RSS)
	c.highest.Anonymous = max(c.highest.Anonymous, u.Anonymous)
	c.highest.Peak = max(c.highest.Peak, u.Peak)
	c.highest.Threads = max(c.highest.Threads, u.Threads)
	return u, true
}

// total is what the driver used, once its last process has ended.
func (c *consumption) total() host.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.highest
	t.CPU = c.ended
	if c.process != nil {
		t.CPU += cpu(c.process)
	}
	return t
}
