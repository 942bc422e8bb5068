//go:build crashpoints

package crashpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Variable is the environment variable that names a directory to talk through. In it, trace gets a
// line for each point that the process reaches: "before" or "after" and the point's name. kill
// has a line with a point and n for each death: the process dies the n-th time it reaches that
// point. The line goes before that, and the file with its last line.
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
		if os.Getpid() == 1 { // the first process of a container cannot be killed from inside
			syscall.Exit(128 + int(syscall.SIGKILL))
		}
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

// diesAt reports whether the process dies at this point now, and counts.
func diesAt(path, point string) (bool, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(content), "\n"), "\n")
	for i, line := range lines {
		var when, name string
		var left int
		if _, err := fmt.Sscan(line, &when, &name, &left); err != nil {
			return false, fmt.Errorf("%s: %q: %w", path, line, err)
		}
		switch {
		case when+" "+name != point:
			continue
		case left > 1:
			lines[i] = fmt.Sprintln(point, left-1)
		case len(lines) == 1:
			err := os.Remove(path)
			if errors.Is(err, fs.ErrNotExist) { // a test has taken it back just now
				return false, nil
			}
			return true, err
		default:
			lines = slices.Delete(lines, i, i+1)
		}
		return left <= 1, replace(path, strings.Join(lines, ""))
	}
	return false, nil
}

// replace replaces a file, which a test reads whenever it likes.
func replace(path, content string) error {
	if err := os.WriteFile(path+".next", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}
