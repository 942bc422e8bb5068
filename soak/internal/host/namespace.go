package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/launch"
)

// insideVariable tells the program that it already has its own namespace.
const insideVariable = "KATBOX_SOAK_INSIDE"

// needsRights is the advice for every refusal to make a namespace.
const needsRights = "run it as root with CAP_SYS_ADMIN, or allow user namespaces to everybody: user.max_user_namespaces " +
	"above 0 and, where they exist, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0 (sysctl)"

// Enter moves this program into a mount namespace of its own: it runs it again there, with the same arguments, and
// inside is true in that process alone. The other one waits for it, and then the error is its exit code, a
// [launch.Exit], if that is not 0. Mounts made inside never show on the host, and the kernel takes them away with the
// last process in the namespace. A user other than root becomes root of a new user namespace.
//
// SIGINT, SIGTERM and SIGHUP are passed on; when this process dies, so does the other. Another error says that there was
// no namespace to be had, or that the other process was killed by a signal.
//
// It is called once: its answer is not handed on to further children.
func Enter() (inside bool, err error) {
	if os.Getenv(insideVariable) != "" {
		os.Unsetenv(insideVariable)
		return true, Privatise()
	}
	code, err := enter()
	if err == nil && code != 0 {
		err = launch.Exit(code)
	}
	return false, err
}

func enter() (exitCode int, err error) {
	// The kernel sends Pdeathsig when the thread that forked ends, not the
	// process; main's goroutine keeps its thread until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = rootIs(os.Geteuid())
		cmd.SysProcAttr.GidMappings = rootIs(os.Getegid())
	}
	// The child ends the run on a signal; this process only has to pass it on
	// and to stay until then.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)

	if err := cmd.Start(); err != nil {
		if refused := (*os.PathError)(nil); errors.As(err, &refused) {
			err = refused.Err // the path is that of this program
		}
		return 0, fmt.Errorf("make a private mount namespace: %w; %s", err, needsRights)
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case s := <-signals:
				// It may have ended by itself meanwhile.
				_ = cmd.Process.Signal(s)
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for the process in the private mount namespace: %w", err)
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 0, fmt.Errorf("the process in the private mount namespace ended: %s", cmd.ProcessState)
}

// rootIs maps root of a new user namespace to the given ID outside.
func rootIs(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
}

// Privatise cuts the namespace's mounts off from those of the host: a new
// namespace begins as a copy that still shares mounts and unmounts.
func Privatise() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mount namespace private: %w; %s", err, needsRights)
	}
	return nil
}
