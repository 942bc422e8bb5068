//go:build crashpoints

package crashpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Variable is the environment variable that names a directory to talk through.
// Without it nothing happens. In there,
//
//   - trace gets a line for each point that the process comes to;
//   - kill has the name of a point and a number: at the point's so manieth time
//     from then on the process ends.
const Variable = "KATBOX_CRASHPOINTS"

// mu has the points of several goroutines take turns.
var mu sync.Mutex

// Around calls effect, which is one change that a crash cannot cut in two. name
// is a constant, used once, that says what changes.
func Around(name string, effect func() error) error {
	here("before " + name)
	err := effect()
	here("after " + name)
	return err
}

func here(point string) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if err := trace(filepath.Join(dir, "trace"), point); err != nil {
		panic(err)
	}
	kill, err := isLast(filepath.Join(dir, "kill"), point)
	if err != nil {
		panic(err)
	}
	if kill {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal may take a moment to reach this thread
	}
}

func trace(path, point string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, point)
	return errors.Join(err, f.Close())
}

// isLast tells whether the process is to end at this point, and counts.
func isLast(path, point string) (bool, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var when, effect string
	var left int
	if err == nil {
		_, err = fmt.Sscan(string(content), &when, &effect, &left)
	}
	if err != nil || when+" "+effect != point {
		return false, err
	}
	if left--; left == 0 {
		return true, os.Remove(path)
	}
	return false, os.WriteFile(path, fmt.Appendln(nil, point, left), 0o600)
}
