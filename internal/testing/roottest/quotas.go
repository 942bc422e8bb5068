package roottest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// QuotaVariable is the environment variable that names file systems by what they do about project
// quotas: enforced=DIR accounted=DIR none=DIR, in any number and order.
const QuotaVariable = "KATBOX_QUOTAS"

// Quotas returns the mount points of the file systems that are in a state of project quotas. Without
// any in [QuotaVariable] the test is skipped: most kernels of build machines have no quotas.
func Quotas(t testing.TB, state string) (dirs []string) {
	t.Helper()
	for word := range strings.FieldsSeq(os.Getenv(QuotaVariable)) {
		if dir, ok := strings.CutPrefix(word, state+"="); ok {
			dirs = append(dirs, dir)
		}
	}
	if dirs == nil {
		Lacks(t, "project quotas", "run it with make guest SUITE=quota")
	}
	Need(t)
	return dirs
}

// PodUser is an ordinary user, as pods run as.
const PodUser = 1000

// AsPod runs a command in a directory as [PodUser] without any capability, as a container does whose
// pod is in the node's user namespace, and returns what it has written.
func AsPod(dir string, command ...string) (output string, err error) {
	return in(dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: PodUser, Gid: PodUser}}, command)
}

// AsRootOfPod runs a command in a directory as root of a user namespace in which root is [PodUser], as
// a container does whose pod has hostUsers: false.
func AsRootOfPod(dir string, command ...string) (output string, err error) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: PodUser, Size: 1}}
	return in(dir, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
		Credential: &syscall.Credential{}}, command)
}

// in runs a command in a directory that its user can reach only because it is open.
func in(path string, attr *syscall.SysProcAttr, command []string) (string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	cmd := exec.Command("sh", append([]string{"-c", `cd /proc/self/fd/3 && exec "$@"`, "sh"}, command...)...)
	cmd.SysProcAttr, cmd.ExtraFiles = attr, []*os.File{dir}
	return output(cmd)
}

// Run runs a command, and returns what it has written.
func Run(command ...string) (string, error) { return output(exec.Command(command[0], command[1:]...)) }

func output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", cmd, text, err)
	}
	return text, err
}
