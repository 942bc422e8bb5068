package mount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestWhoUsesAVolume tries the command of the documents: it names the processes that keep a volume from being unmounted, and none
// that uses another directory of the same disk.
func TestWhoUsesAVolume(t *testing.T) {
	roottest.Need(t)
	page, err := os.ReadFile("../../../deploy/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, ok := strings.Cut(string(page), "    find /proc/")
	command, _, _ = strings.Cut(command, "\n")
	if !ok || !strings.Contains(command, "PATH") {
		t.Fatalf("the page has no such command, but %q", command)
	}
	disk := t.TempDir()
	data, target, other := filepath.Join(disk, "data"), filepath.Join(disk, "target"), filepath.Join(disk, "other")
	for _, dir := range []string{data, target, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	roottest.Mount(t, data, target, "", unix.MS_BIND, "")
	// A process that has a directory as its own, and one that has a file open.
	var users, others []string
	for dir, of := range map[string]*[]string{target: &users, other: &others} {
		file, err := os.Create(filepath.Join(dir, "file"))
		if err != nil {
			t.Fatal(err)
		}
		in, with := exec.Command("sleep", "600"), exec.Command("sleep", "600")
		in.Dir, with.ExtraFiles = dir, []*os.File{file}
		for _, cmd := range []*exec.Cmd{in, with} {
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
			*of = append(*of, "/proc/"+strconv.Itoa(cmd.Process.Pid)+"/")
		}
		file.Close()
	}
	if err := unix.Unmount(target, 0); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("unmount: %v, want EBUSY", err)
	}
	out, _ := exec.Command("sh", "-c", "find /proc/"+strings.ReplaceAll(command, "PATH", target)).Output() // processes end meanwhile
	for _, user := range users {
		if !strings.Contains(string(out), user) {
			t.Errorf("%s uses it, and is not named in\n%s", user, out)
		}
	}
	for _, not := range others {
		if strings.Contains(string(out), not) {
			t.Errorf("%s does not use it, and is named in\n%s", not, out)
		}
	}
}
