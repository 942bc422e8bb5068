package host

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestEnter(t *testing.T) {
	needMounts(t)
	dir := t.TempDir()
	unmountAtEnd(t, dir)
	cmd := exec.Command("/proc/self/exe", dir)
	cmd.Env = append(os.Environ(), partVariable+"=enter")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != entered {
		t.Fatalf("%v, want exit code %d: %s", err, entered, out)
	}
	if mounted, err := MountedAt(dir); err != nil || mounted {
		t.Errorf("what was mounted inside shows outside: %t, %v", mounted, err)
	}
}
