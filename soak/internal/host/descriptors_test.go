package host

import (
	"os"
	"os/exec"
	"testing"
)

func TestDescriptors(t *testing.T) {
	// A process with three files, and four more that it is given.
	cmd := exec.Command("sleep", "60")
	for range 4 {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := Descriptors(cmd.Process.Pid); n != 7 || err != nil {
		t.Errorf("%d descriptors, %v, want 7", n, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if n, err := Descriptors(cmd.Process.Pid); err == nil {
		t.Errorf("%d descriptors of a process that is gone, want an error", n)
	}
}
