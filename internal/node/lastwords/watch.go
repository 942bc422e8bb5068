package lastwords

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

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
	// wake holds a token while there are pods to look at, or to close.
	wake chan struct{}

	// adding is held over the system calls about watches, which may ask the disk.
	adding sync.Mutex
	// refused: a directory could not be watched, which was logged. adding guards it.
	refused bool

	// reading is held while events are read and noted, which never asks a disk. buffer is for them.
	reading sync.Mutex
	buffer  [64 << 10]byte

	// mu is never held over a system call.
	mu sync.Mutex
	// pods are those whose directories are watched, by the watches.
	pods map[int]*pod
	// changed are the pods to look at.
	changed map[*pod]struct{}
	// left are those to close.
	left []*pod
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

func (w *watch) close() { w.events.Close() }

// look lets Run look at a pod. It does not block.
func (w *watch) look(p *pod) {
	w.mu.Lock()
	p.changes.Add(1)
	w.changed[p] = struct{}{}
	w.mu.Unlock()
	w.ring()
}

// leave lets Run close a pod. It does not block.
func (w *watch) leave(p *pod) {
	w.mu.Lock()
	delete(w.changed, p)
	w.left = append(w.left, p)
	w.mu.Unlock()
	w.ring()
}

func (w *watch) ring() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns the pods to look at and those to close.
func (w *watch) take() (changed map[*pod]struct{}, left []*pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed, left = w.changed, w.left
	w.changed, w.left = map[*pod]struct{}{}, nil
	return changed, left
}

// add watches an open directory of a pod, which is read afterwards: what came before its watch was known is read then. It
// reports whether the kernel says from now on what changes there.
func (w *watch) add(p *pod, dir int) bool {
	w.adding.Lock()
	defer w.adding.Unlock()
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(dir), changes)
	if err == nil {
		w.mu.Lock()
		w.pods[wd], p.watches[wd] = p, struct{}{}
		w.mu.Unlock()
		return true
	}
	if !w.refused && !errors.Is(err, unix.ENOENT) {
		w.refused = true
		p.logs.cfg.Log.Error(os.NewSyscallError("inotify_add_watch", err), "cannot follow the logs of a pod, and of others that follow; "+
			"what the kubelet removes before it unpublishes their volumes is lost; see fs.inotify.max_user_watches", "directory", p.name)
	}
	return false
}

// remove ends the watches of a pod, except those that it shares with the same pod, which is followed again meanwhile.
func (w *watch) remove(p *pod) {
	w.adding.Lock()
	defer w.adding.Unlock()
	for _, wd := range w.forget(p) {
		_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // the directory may be gone, and the watch with it
	}
}

// forget returns the watches that are the pod's alone.
func (w *watch) forget(p *pod) (own []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for wd := range p.watches {
		if w.pods[wd] == p {
			delete(w.pods, wd)
			own = append(own, wd)
		}
	}
	p.watches = nil
	return own
}

// run looks at pods whose directories have changed, and closes those that are left, until ctx ends.
func (w *watch) run(ctx context.Context, l *Logs) {
	var reader sync.WaitGroup
	reader.Go(func() { w.read(l) })
	defer reader.Wait()
	defer func() { _ = w.events.SetReadDeadline(time.Unix(1, 0)) }() // inotify has deadlines
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		changed, left := w.take()
		for _, p := range left {
			p.close()
		}
		for p := range changed {
			p.look()
		}
	}
}

// read notes which pods change until its deadline.
func (w *watch) read(l *Logs) {
	raw, err := w.events.SyscallConn()
	if err == nil {
		var readErr error
		err = raw.Read(func(uintptr) (done bool) {
			readErr = w.catchUp(l)
			return readErr != nil
		})
		err = errors.Join(err, readErr)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		l.cfg.Log.Error(err, "cannot follow the logs of pods any more; what the kubelet removes before it unpublishes their volumes is lost")
	}
}

// catchUp notes all that the kernel has said so far. It asks no disk.
func (w *watch) catchUp(l *Logs) error {
	w.reading.Lock()
	defer w.reading.Unlock()
	for {
		n, err := unix.Read(w.fd, w.buffer[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return os.NewSyscallError("read inotify", err)
		default:
			w.note(l, w.buffer[:n])
		}
	}
}

// note notes which pods some events are about.
func (w *watch) note(l *Logs, events []byte) {
	for rest := events; len(rest) >= unix.SizeofInotifyEvent; {
		wd := int(int32(binary.NativeEndian.Uint32(rest)))
		mask := binary.NativeEndian.Uint32(rest[4:])
		length := int(binary.NativeEndian.Uint32(rest[12:]))
		name := rest[unix.SizeofInotifyEvent:][:length]
		rest = rest[unix.SizeofInotifyEvent+length:]
		w.happened(l, wd, mask, string(bytes.TrimRight(name, "\x00")))
	}
}

func (w *watch) happened(l *Logs, wd int, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for _, p := range l.all() {
			w.look(p)
		}
		return
	}
	if p := w.of(l, wd, mask, name); p != nil {
		w.look(p)
	}
}

// of returns the pod that an event is about; nil if none is followed.
func (w *watch) of(l *Logs, wd int, mask uint32, name string) *pod {
	if wd == w.root {
		return l.named(name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[wd]
	if mask&unix.IN_IGNORED != 0 && p != nil {
		delete(w.pods, wd)
		delete(p.watches, wd)
	}
	return p
}
