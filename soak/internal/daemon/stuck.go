package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/host"
	"github.com/katbox/katbox/soak/testbed"
)

// dumpLimit is how long a program may take to write what its goroutines do.
const dumpLimit = 10 * time.Second

// stuck says what the threads of a program do that does not go on, and ends it: its log has its goroutines then.
func stuck(p *testbed.Process) string {
	if p.Over() {
		return ""
	}
	said := &strings.Builder{}
	used, err := host.CPUTime(p.PID())
	fmt.Fprintf(said, "it has used %s of CPU time (%v), and its threads are:\n", used, err)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.PID())) // a wrong pattern is the only error
	for _, task := range tasks {
		fmt.Fprintf(said, "  %s: %s, in system call %s, in the kernel: %s\n", filepath.Base(task), stateIn(read(task, "status")),
			read(task, "syscall"), strings.ReplaceAll(read(task, "stack"), "\n", " "))
	}
	_ = p.Signal(unix.SIGQUIT) // or it is gone already
	select {
	case <-p.Ended():
	case <-time.After(dumpLimit):
		fmt.Fprintf(said, "it did not end within %s of SIGQUIT\n", dumpLimit)
		_ = p.Signal(unix.SIGKILL) // or it is gone already
		select {
		case <-p.Ended():
		case <-time.After(dumpLimit):
			fmt.Fprintf(said, "it did not end within %s of SIGKILL either: it waits in the kernel\n", dumpLimit)
		}
	}
	return said.String()
}

// stateIn finds the state in a status of proc(5).
func stateIn(status string) string {
	_, rest, _ := strings.Cut(status, "State:\t")
	state, _, _ := strings.Cut(rest, "\n")
	return state
}

// read is what a file of proc(5) says, or why it cannot be read.
func read(task, name string) string {
	text, err := os.ReadFile(filepath.Join(task, name))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
