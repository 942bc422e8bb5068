package dataloss

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
)

// binDir is where the daemon is built.
var binDir string

// TestMain runs many tests at the same time: they wait for deadlines most of
// the time.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	err := flag.Set("test.parallel", "16")
	if err == nil {
		binDir, err = os.MkdirTemp("", "loss-bin-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(binDir)
	return m.Run()
}

// katbox builds the daemon, once for all tests.
var katbox = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "katbox")
	args := []string{"build", "-buildvcs=false", "-o", path}
	if raceDetected() {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/katbox/katbox/cmd/katbox")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return path, nil
})

// raceDetected reports whether the tests run with the race detector: then the
// daemon has it, too, and ends with an error after a race.
func raceDetected() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
