package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// helperName is how the child that freezes is called, in place of the program's
// name.
const helperName = "katbox-soak-freezer"

// parentDeathSignal is what the kernel sends to the child when its parent dies.
const parentDeathSignal = unix.SIGUSR1

// What the child says on its standard output, each time the state has changed.
const (
	saysFrozen = 'f'
	saysThawed = 't'
)

// RunHelper has to be the first call of main, and of TestMain in tests that
// stall a disk. In a process that was started to be a helper it does the work
// and ends the process; in all others it returns at once.
//
// The one helper there is freezes and thaws a file system (see [Disk.Stall]). It
// thaws and ends when its standard input ends or when its parent dies in
// whatever way, and no signal but SIGKILL and SIGUSR1 ends it before.
func RunHelper() {
	if os.Args[0] != helperName {
		return
	}
	// SIGPIPE too: the parent who does not listen any more must not keep it from
	// thawing.
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	// A parent that was killed while one of its own threads waits for the frozen
	// file system does not end before that thread does, and until then its end of
	// the pipe stays open. But the thread that has started this process ends at
	// once, and the kernel sends a signal then, see freezer.
	parentGone := make(chan os.Signal, 2)
	signal.Notify(parentGone, parentDeathSignal)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		parentGone <- parentDeathSignal
	}()
	if err := freezeAgainAndAgain(parentGone, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// freezeAgainAndAgain is the work of the child. Its arguments are those that
// freezer gives, and the file system is that of file descriptor 3.
func freezeAgainAndAgain(parentGone <-chan os.Signal, args []string) error {
	const wanted = 3
	if len(args) != wanted {
		return fmt.Errorf("%d arguments, want %d", len(args), wanted)
	}
	var times [wanted]time.Duration
	for i, arg := range args {
		var err error
		if times[i], err = time.ParseDuration(arg); err != nil {
			return err
		}
	}
	root := os.NewFile(3, "the working directory")
	over := time.NewTimer(times[0])
	defer over.Stop()
	for {
		if err := freeze(root); err != nil {
			return err
		}
		// Whether it is read does not matter.
		_, _ = os.Stdout.Write([]byte{saysFrozen})
		goOn := pause(times[1], over.C, parentGone)
		if err := thaw(root); err != nil {
			return err
		}
		_, _ = os.Stdout.Write([]byte{saysThawed})
		if !goOn || !pause(times[2], over.C, parentGone) {
			return nil
		}
	}
}

// pause waits, and reports whether to go on after that.
func pause(length time.Duration, over <-chan time.Time, parentGone <-chan os.Signal) bool {
	t := time.NewTimer(length)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-over:
	case <-parentGone:
	}
	return false
}

// The ioctls FIFREEZE and FITHAW of linux/fs.h, which golang.org/x/sys does not
// have: _IOWR('X', 119, int) and _IOWR('X', 120, int), the same on every
// architecture.
const (
	ioctlFreeze = 0xc0045877
	ioctlThaw   = 0xc0045878
)

// freeze stops all changes to the file system. Freezing twice is EBUSY.
func freeze(root *os.File) error {
	return control(root, "freeze", ioctlFreeze)
}

// thaw lets changes go on. It does nothing to what is not frozen.
func thaw(root *os.File) error {
	if err := control(root, "thaw", ioctlThaw); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

func control(root *os.File, what string, request uint) error {
	for {
		err := unix.IoctlSetInt(int(root.Fd()), request, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s the file system at %s: %w", what, root.Name(), err)
		}
		return nil
	}
}

// freezer is the command that runs the child. It has to be started and waited
// for on a thread that is locked.
func freezer(total, frozen, thawed time.Duration) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{helperName, total.String(), frozen.String(), thawed.String()}
	// In a session of its own no signal for a whole process group reaches it,
	// SIGKILL least of all.
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Pdeathsig: parentDeathSignal}
	return cmd
}
