package lastwords

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// changes are the events after which a directory is looked at again. A write to a file is none of them.
const changes = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR

// watch has the kernel say which directories change.
type watch struct {
	// events is the inotify instance. Its descriptor is fd; os.File.Fd would make it block.
	events *os.File
	fd     int
	// root is the watch of the directory of all pods.
	root int
	// wake holds a token while there are pods to look at.
	wake chan struct{}

	mu     sync.Mutex
	closed bool
	// pods are those whose directories are watched, by the watches.
	pods map[int]*pod
	// changed are the pods to look at.
	changed map[*pod]struct{}
	// refused: a directory could not be watched, which was logged.
	refused bool
}

func newWatch(root int) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &watch{events: os.NewFile(uintptr(fd), "inotify"), fd: fd, wake: make(chan struct{}, 1), pods: map[int]*pod{},
		changed: map[*pod]struct{}{}}
	if w.root, err = unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(root), changes); err != nil {
		w.close()
		return nil, os.NewSyscallError("inotify_add_watch", err)
	}
	return w, nil
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.events.Close()
}

// look lets Run look at a pod. It does not block.
func (w *watch) look(p *pod) {
	w.mu.Lock()
	w.changed[p] = struct{}{}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// add watches an open directory of a pod.
func (w *watch) add(p *pod, dir int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(dir), changes)
	if err == nil {
		w.pods[wd], p.watches[wd] = p, struct{}{}
		return
	}
	if !w.refused && !errors.Is(err, unix.ENOENT) {
		w.refused = true
		p.logs.cfg.Log.Error(os.NewSyscallError("inotify_add_watch", err), "cannot follow the logs of a pod, and of others that follow; "+
			"what the kubelet removes before it unpublishes their volumes is lost; see fs.inotify.max_user_watches", "directory", p.name)
	}
}

// leave ends the watches of a pod.
func (w *watch) leave(p *pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wd := range p.watches {
		delete(w.pods, wd)
		if !w.closed {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // the directory may be gone, and the watch with it
		}
	}
	p.watches = nil
	delete(w.changed, p)
}

// run looks at pods whose directories have changed until ctx ends.
func (w *watch) run(ctx context.Context, l *Logs) {
	var reader sync.WaitGroup
	reader.Go(func() { w.read(l) })
	defer reader.Wait()
	defer w.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		w.mu.Lock()
		changed := w.changed
		w.changed = map[*pod]struct{}{}
		w.mu.Unlock()
		for p := range changed {
			p.look()
		}
	}
}

// read notes which pods change until the instance is closed.
func (w *watch) read(l *Logs) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := w.events.Read(buffer)
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				l.cfg.Log.Error(err, "cannot follow the logs of pods any more; what the kubelet removes before it unpublishes their volumes is lost")
			}
			return
		}
		for rest := buffer[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			wd := int(int32(binary.NativeEndian.Uint32(rest)))
			mask := binary.NativeEndian.Uint32(rest[4:])
			length := int(binary.NativeEndian.Uint32(rest[12:]))
			name := rest[unix.SizeofInotifyEvent:][:length]
			rest = rest[unix.SizeofInotifyEvent+length:]
			w.happened(l, wd, mask, string(bytes.TrimRight(name, "\x00")))
		}
	}
}

func (w *watch) happened(l *Logs, wd int, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for _, p := range l.all() {
			w.look(p)
		}
		return
	}
	var p *pod
	if wd == w.root {
		p = l.named(name)
	} else {
		w.mu.Lock()
		p = w.pods[wd]
		if mask&unix.IN_IGNORED != 0 && p != nil {
			delete(w.pods, wd)
			delete(p.watches, wd)
		}
		w.mu.Unlock()
	}
	if p != nil {
		w.look(p)
	}
}
