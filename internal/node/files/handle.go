package files

import (
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// handle is an open file. Unlike an os.File it makes no system call of its own, which counts where
// there are many small files.
type handle struct {
	mu sync.Mutex
	fd int
	// users is how many calls of use run.
	users  int
	closed bool
}

// use calls fn with the file's descriptor, which is open meanwhile, again after EINTR. The error is
// fs.ErrClosed after close.
func (h *handle) use(fn func(fd int) error) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return fs.ErrClosed
	}
	h.users++
	h.mu.Unlock()
	defer h.leave()
	return kernel.IgnoreEINTR(func() error { return fn(h.fd) })
}

func (h *handle) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users--; h.users == 0 && h.closed {
		unix.Close(h.fd)
	}
}

// close closes the file once no call of use runs. It does not wait for that.
func (h *handle) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fs.ErrClosed
	}
	h.closed = true
	if h.users > 0 {
		return nil
	}
	return os.NewSyscallError("close", unix.Close(h.fd))
}

// readAt fills b from offset on. It reads less only at the end of the file or with an error.
func (h *handle) readAt(b []byte, offset int64) (n int, err error) {
	for n < len(b) {
		var m int
		err = h.use(func(fd int) (err error) {
			m, err = unix.Pread(fd, b[n:], offset+int64(n))
			return err
		})
		if err != nil {
			return n, os.NewSyscallError("pread", err)
		}
		if m == 0 {
			return n, nil
		}
		n += m
	}
	return n, nil
}
