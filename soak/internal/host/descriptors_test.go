package host

import (
	"os"
	"os/exec"
	"testing"
)

func TestDescriptors(t *testing.T) {
	before, err := Descriptors(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	if after, err := Descriptors(os.Getpid()); after != before+4 || err != nil {
		t.Errorf("%d descriptors after four files were opened, %v, and %d before", after, err, before)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if n, err := Descriptors(cmd.Process.Pid); err == nil {
		t.Errorf("%d descriptors of a process that is gone, want an error", n)
	}
}
