// Package clock gives a daemon a wall clock that can be stepped at will while it runs, as if
// an administrator had set the machine's. Its monotonic clock stays right, and with it its timers.
//
// The daemon's source is not touched. It is built with "go build -overlay", which gives it another
// package time: there, time.Now adds to the wall clock an offset from a file. So whatever asks
// for the time sees the step, the libraries too, and no code of the daemon can go around it. A seam in
// the daemon's own code would be all over it, and could not step one clock without the other:
// time.Now().Add moves both.
//
// The price is that a run with steps tests another build than the one that is shipped. Other runs,
// and the power cuts, test the shipped one on the machine's clock.
//
// Not stepped are the times of files, and what asks the kernel without package time.
package clock

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// variable is the environment variable that names the file, in the source of steps.go.txt too.
const variable = "KATBOX_SOAK_CLOCK"

// Clock is the wall clock of the programs that follow it. All show the same time. It is safe for
// concurrent use.
type Clock struct {
	path string
	page []byte
}

// New makes a clock that shows the machine's time, and its file. Close ends its use, not the file.
func New(path string) (*Clock, error) {
	const size = int(unsafe.Sizeof(int64(0)))
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		return nil, fmt.Errorf("make a clock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("make a clock: %w", err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("make a clock: map %s: %w", path, err)
	}
	return &Clock{path, page}, nil
}

// Set makes the clock show the machine's time plus the offset, to the programs that run and to those
// started later. A program that asks for the time after that sees the new one.
func (c *Clock) Set(offset time.Duration) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(&c.page[0])), int64(offset))
}

// Environment is what a program is started with that is to follow the clock.
func (c *Clock) Environment() string { return variable + "=" + c.path }

// Close gives back what the clock uses here. Programs keep the last offset.
func (c *Clock) Close() error { return unix.Munmap(c.page) }

// Follows reports whether a program was built to follow a clock.
func Follows(program string) (bool, error) {
	code, err := os.ReadFile(program)
	return bytes.Contains(code, []byte(variable)), err
}
