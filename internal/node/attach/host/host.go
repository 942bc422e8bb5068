// Package host runs programs of the node's own system, such as mkfs.ext4 and iscsiadm. The image of the
// daemon has none, and these belong to the kernel and the services of the node.
//
// A program sees the host's root directory, and the network and the processes of the daemon's own
// namespaces. It dies with the daemon.
package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// Root is the host's root directory as the daemon sees it; empty for the daemon's own.
type Root string

// ErrNoProgram: the host does not have the program.
var ErrNoProgram = errors.New("the node does not have the program")

// Program is a program to run.
type Program struct {
	// Name is looked up in the host's directories of programs.
	Name string
	Args []string
	// Input is what it reads from stdin. Unlike Args, no other process can see it.
	Input []byte
}

// directories is where a host has such programs. Sbin comes first: that is where they are.
var directories = []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// waitDelay is how long the output of a program may stay open after its end.
var waitDelay = 10 * time.Second

// Run runs a program to its end, and returns what it wrote to stdout and stderr. An exit status other than 0 is
// an *exec.ExitError, which says what the program wrote; a missing program is [ErrNoProgram].
//
// The end of ctx kills the program. A program that waits for a disk cannot be killed before the disk answers
// or fails, so Run may last longer than ctx.
func (r Root) Run(ctx context.Context, p Program) (output string, err error) {
	// The kernel kills the program when the thread that started it ends, which a thread does not while a
	// goroutine is locked to it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, dir := range directories {
		output, err = r.run(ctx, path.Join(dir, p.Name), p)
		if !errors.Is(err, fs.ErrNotExist) {
			return output, err
		}
	}
	return "", fmt.Errorf("%w %s (looked in %s below %s/); install it there", ErrNoProgram, p.Name, strings.Join(directories, ", "), r)
}

func (r Root) run(ctx context.Context, file string, p Program) (string, error) {
	command := exec.CommandContext(ctx, file, p.Args...)
	command.Dir = "/"
	command.Env = []string{"PATH=" + strings.Join(directories, ":"), "LC_ALL=C"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: string(r), Pdeathsig: syscall.SIGKILL}
	if p.Input != nil {
		command.Stdin = bytes.NewReader(p.Input)
	}
	// A process that the program has left behind may hold its output open. Then it is not known whether the output
	// is whole, and the run has failed.
	command.WaitDelay = waitDelay
	var out bounded
	command.Stdout, command.Stderr = &out, &out
	err := kernel.Run(command)
	text := strings.TrimSpace(string(out.kept))
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return text, fmt.Errorf("%s: %w: %w", p.Name, context.Cause(ctx), err)
	case text != "":
		return text, fmt.Errorf("%s: %w: %s", p.Name, err, oneLine(text))
	}
	return text, fmt.Errorf("%s: %w", p.Name, err)
}

// oneLine is the end of what a program wrote, where it says why it failed.
func oneLine(text string) string {
	const longest = 400
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' }), "; ")
	if len(text) > longest {
		text = "..." + strings.ToValidUTF8(text[len(text)-longest:], "")
	}
	return text
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ kept []byte }

// largest is how much of a program's output is kept.
const largest = 64 << 10

// Write takes all of p, and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), largest-len(b.kept))]...)
	return len(p), nil
}
