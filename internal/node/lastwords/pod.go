package lastwords

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/crilog"
	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/node/beneath"
)

// pod is a pod that is followed.
type pod struct {
	Pod
	logs *Logs
	// name is that of its directory.
	name string
	// users counts the calls of Follow without a Leave; Logs.mu guards it.
	users int

	// changes counts what is known to have happened to its directories, and seen how much of it had when they were last read
	// as a whole. Without a difference, all that is there is open.
	changes, seen atomic.Uint64

	// mu is held while the pod's directory is read; nothing that must not block takes it.
	mu     sync.Mutex
	closed bool
	// files are those that are held open, by what they are: the kubelet renames them.
	files map[beneath.ID]*file
	// watches are those of its directories; watch.mu guards them.
	watches map[int]struct{}
}

// file is a file that is held open.
type file struct {
	name
	id beneath.ID
	fd int
	// removed is when it was first seen to have no name any more; zero while it has one.
	removed time.Time
}

// isSeen reports whether nothing has happened since the directories were read, and all was opened.
func (p *pod) isSeen() bool { return p.seen.Load() == p.changes.Load() }

// look opens what has come, and closes what was removed long ago.
func (p *pod) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookAgain(func(name, int) {})
}

// lookAgain is look, with p.mu. It calls beyond with a handle of each file that is too many to be held open.
func (p *pod) lookAgain(beyond func(n name, handle int)) {
	if p.closed || p.isSeen() {
		return
	}
	changes, seen := p.changes.Load(), map[beneath.ID]bool{}
	whole := p.eachName(func(n name, handle int) (open bool) {
		st, err := kernel.Fstat(handle)
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 {
			return false
		}
		id := beneath.ID{Dev: st.Dev, Ino: st.Ino}
		if held := p.files[id]; held != nil {
			held.name, held.removed = n, time.Time{}
		} else if len(p.files) >= mostFiles || !p.logs.mayOpen() {
			beyond(n, handle)
			return false
		} else if fd, err := reopen(handle); err == nil {
			p.files[id] = &file{name: n, id: id, fd: fd}
		} else {
			p.logs.count(-1)
			return false
		}
		seen[id] = true
		return true
	})
	if whole {
		p.seen.Store(changes)
	}
	if p.drop(seen) {
		time.AfterFunc(removedFor, func() { p.logs.watch.look(p) })
	}
}

// opened returns all files of the pod, each with a descriptor of its own, which the caller closes: those of each container
// together, its newest first.
func (p *pod) opened() []*file {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*file
	p.lookAgain(func(n name, handle int) {
		if len(all) >= mostFiles {
			return
		}
		if fd, err := reopen(handle); err == nil {
			all = append(all, &file{name: n, fd: fd})
		}
	})
	for _, f := range p.files {
		if fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			all = append(all, &file{name: f.name, fd: fd, removed: f.removed})
		}
	}
	// Of two with one name, the first has it still.
	return slices.CompactFunc(sorted(all), func(kept, other *file) bool {
		same := kept.name == other.name
		if same {
			unix.Close(other.fd)
		}
		return same
	})
}

// drop closes files that were removed long ago, or whose content is in a compressed one by now. The newest of each
// container stays. It reports whether there is more to close after a while.
func (p *pod) drop(seen map[beneath.ID]bool) (again bool) {
	names := map[name]bool{}
	for id := range seen {
		names[p.files[id].name] = true
	}
	now, last := time.Now(), ""
	for _, f := range sorted(slices.Collect(maps.Values(p.files))) {
		newest := f.container != last
		last = f.container
		switch {
		case seen[f.id]:
			continue
		case f.removed.IsZero():
			f.removed = now
		}
		packed := names[name{f.container, f.file + compressed}]
		if packed || !newest && now.Sub(f.removed) >= removedFor {
			p.closeFile(f)
		}
		again = again || !packed && !newest
	}
	return again
}

func (p *pod) closeFile(f *file) {
	delete(p.files, f.id)
	unix.Close(f.fd)
	p.logs.count(-1)
}

// close closes all files of a pod that is followed no more.
func (p *pod) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, f := range p.files {
		p.closeFile(f)
	}
	p.logs.watch.remove(p)
}

// eachName calls f with a handle that stands for each file of the pod whose name is one of the kubelet's. It is called
// with p.mu, and watches the directories. whole reports whether it has seen all of them, and f has opened each file.
func (p *pod) eachName(f func(n name, handle int) (open bool)) (whole bool) {
	top, err := p.logs.opener.Unnoticed(p.logs.root, p.name)
	if err != nil {
		return errors.Is(err, unix.ENOENT) // not there yet, or not any more
	}
	defer unix.Close(top)
	whole = p.logs.watch.add(p, top)
	containers := 0
	for _, container := range namesIn(top) {
		if !containerName.MatchString(container) {
			continue
		}
		if containers++; containers > mostContainers {
			return false
		}
		dir, err := p.logs.opener.Unnoticed(top, container)
		if err != nil {
			whole = false
			continue
		}
		whole = p.logs.watch.add(p, dir) && whole
		for _, file := range namesIn(dir) {
			if _, ok := crilog.ParseName(file); !ok {
				continue
			}
			handle, err := p.logs.opener.Look(dir, file)
			if err != nil {
				whole = false
				continue
			}
			whole = f(name{container, file}, handle) && whole
			unix.Close(handle)
		}
		unix.Close(dir)
	}
	return whole
}

// namesIn returns the names in an open directory, not more than mostNames of them. What cannot be read has none.
func namesIn(dir int) (names []string) {
	// Most have a few names. A larger buffer makes the stack of each goroutine grow several times.
	var buffer [1 << 10]byte
	for len(names) < mostNames {
		size, err := beneath.Getdents(dir, buffer[:])
		if err != nil || size <= 0 {
			break
		}
		for r := range beneath.Records(buffer[:size]) {
			names = append(names, string(r.Name))
		}
	}
	return names
}

// reopen opens the very file that a handle stands for.
func reopen(handle int) (int, error) {
	path := "/proc/self/fd/" + strconv.Itoa(handle)
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := kernel.Openat(unix.AT_FDCWD, path, flags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		fd, err = kernel.Openat(unix.AT_FDCWD, path, flags)
	}
	return fd, err
}
