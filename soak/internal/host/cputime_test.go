package host

import (
	"os"
	"testing"
	"time"
)

func TestCPUTime(t *testing.T) {
	before, err := CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// It ends as soon as some was used, however busy the machine is.
	for after := before; after-before < time.Millisecond; {
		if after, err = CPUTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if used, err := CPUTime(-1); err == nil {
		t.Errorf("of no process: %s, want an error", used)
	}
}

func TestChildrenTime(t *testing.T) {
	if got, err := childrenTime(procStat); err != nil || got != 150*time.Millisecond {
		t.Errorf("%s, %v, want 150ms", got, err)
	}
	if got, err := childrenTime("1 (x) S 1"); err == nil {
		t.Errorf("of a short text: %s, want an error", got)
	}
}
