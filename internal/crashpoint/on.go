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

// Variable is the environment variable that names a directory to talk through. In it, trace gets a
// line for each point that the process reaches: "before" or "after" and the point's name. kill
// holds a point and n: the process dies the n-th time it reaches that point.
const Variable = "KATBOX_CRASHPOINTS"

// points makes the points of several goroutines take turns.
var points sync.Mutex

// Around makes a change between the two points of a name, which has no blanks.
func Around(name string, change func() error) error {
	reach("before " + name)
	err := change()
	reach("after " + name)
	return err
}

func reach(point string) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return
	}
	points.Lock()
	defer points.Unlock()
	if err := trace(filepath.Join(dir, "trace"), point); err != nil {
		panic(err)
	}
	dies, err := diesAt(filepath.Join(dir, "kill"), point)
	if err != nil {
		panic(err)
	}
	if dies {
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

// diesAt tells whether the process dies at this point now, and counts.
func diesAt(path, point string) (bool, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var when, name string
	var left int
	if err == nil {
		_, err = fmt.Sscan(string(content), &when, &name, &left)
	}
	if err != nil || when+" "+name != point {
		return false, err
	}
	if left--; left == 0 {
		return true, os.Remove(path)
	}
	return false, os.WriteFile(path, fmt.Appendln(nil, point, left), 0o600)
}
