package localdisk

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/quota"
)

// Projects gives project IDs to the volumes of all pools of a process, and of those on one file system to each
// another one.
type Projects struct {
	ids      quota.Range
	reserved []uint32
	// changed is called for each limit that another program has changed; it may be nil.
	changed func()
	log     logr.Logger

	mu sync.Mutex
	// systems are the file systems with an open pool, by their numbers in the mount table.
	systems map[uint64]*fsProjects
}

// NewProjects returns those of a range, except the reserved ones. No inline volume gets one of the range. changed is
// called for each limit that another program has changed; it may be nil.
func NewProjects(ids quota.Range, reserved []uint32, changed func(), log logr.Logger) *Projects {
	return &Projects{ids: ids, reserved: reserved, changed: changed, log: log, systems: map[uint64]*fsProjects{}}
}

// fsProjects are the projects on one file system.
type fsProjects struct {
	*quota.Projects
	owner  *Projects
	device uint64
	// handle is what the kernel is asked through; it outlives the pool that came first.
	handle *os.File
	users  int
}

// on returns the projects on the file system that a directory is on, which [fsProjects.release] gives back.
// limiter returns who limits there.
func (p *Projects) on(device uint64, dir *os.File, limiter func(fd int) quota.Kernel) (*fsProjects, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there, ok := p.systems[device]; ok {
		there.users++
		return there, nil
	}
	handle, err := kernel.Open(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	there := &fsProjects{owner: p, device: device, handle: handle, users: 1, Projects: quota.New(quota.Config{
		Kernel: limiter(int(handle.Fd())), Mode: quota.Required, IDs: p.ids, Reserved: p.reserved,
		LimitChanged: p.changed, Log: p.log.WithValues("disk", dir.Name()),
	})}
	p.systems[device] = there
	return there, nil
}

// release gives the projects back that [Projects.on] returned.
func (f *fsProjects) release() error {
	f.owner.mu.Lock()
	f.users--
	last := f.users == 0
	if last {
		delete(f.owner.systems, f.device)
	}
	f.owner.mu.Unlock()
	if !last {
		return nil
	}
	f.Close()
	return f.handle.Close()
}

var errNoProject = errors.New("its record has no project; delete the volume")
