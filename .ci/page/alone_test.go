package page

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// aloneIn is set in the process that runs the tests in a network of its own.
const aloneIn = "KATBOX_PAGE_NETWORK"

// kubeconfigVariable names the file by which a real cluster is reached.
const kubeconfigVariable = "PAGE_KUBECONFIG"

// TestMain runs the tests in a network of their own, with the loopback interface alone: a request to
// another host goes nowhere, and when an interface of the machine comes or goes, which makes Chromium give
// up what it loads, nothing happens here. A test against a real cluster needs the real network.
func TestMain(m *testing.M) {
	if os.Getenv(aloneIn) != "" {
		if err := loopbackUp(); err != nil {
			fmt.Fprintln(os.Stderr, "the loopback interface does not come up:", err)
			os.Exit(1)
		}
	} else if os.Getenv(kubeconfigVariable) == "" {
		code, err := runAlone()
		if err == nil {
			os.Exit(code)
		}
		fmt.Fprintln(os.Stderr, "the tests run without a network of their own:", err)
	}
	code := m.Run()
	if chrome.end != nil {
		chrome.end()
	}
	os.Exit(code)
}

// runAlone runs this program again in a network of its own, and returns its exit code.
func runAlone() (int, error) {
	runtime.LockOSThread() // the process ends with the thread that has started it
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), aloneIn+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &ended) {
		return max(1, ended.ExitCode()), nil
	} else if err != nil {
		return 1, nil
	}
	return 0, nil
}

// loopbackUp makes 127.0.0.1 reachable.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
