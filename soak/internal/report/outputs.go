package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/katbox/katbox/soak/internal/launch"
)

// Outputs are the files that the result goes to in the end. Make them with
// NewOutputs.
type Outputs []output

type output struct {
	flag  string
	path  string
	write func(*Result, io.Writer) error
	file  *os.File
}

// NewOutputs lists what the flags --json and --report ask for, not opened yet;
// an empty path asks for nothing. Nothing may lie inside emptied, a directory
// that a clean run empties, if there is one. The error wraps [launch.ErrUsage].
func NewOutputs(json, page, emptied string) (Outputs, error) {
	var list Outputs
	for _, out := range []output{
		{flag: "--json", path: json, write: (*Result).JSON},
		{flag: "--report", path: page, write: (*Result).Page},
	} {
		if out.path == "" {
			continue
		}
		for _, other := range list {
			if filepath.Clean(out.path) == filepath.Clean(other.path) {
				return nil, fmt.Errorf("%w: %s and %s are both %s; name two files", launch.ErrUsage, other.flag, out.flag, out.path)
			}
		}
		inside, err := within(out.path, emptied)
		if err != nil {
			return nil, fmt.Errorf("%w: %s %s: %w", launch.ErrUsage, out.flag, out.path, err)
		}
		if inside {
			return nil, fmt.Errorf("%w: %s %s lies inside %s, which is emptied after a clean run; name another place",
				launch.ErrUsage, out.flag, out.path, emptied)
		}
		list = append(list, out)
	}
	return list, nil
}

// within reports whether a path lies in a directory, by their names alone.
func within(path, dir string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	path, errPath := filepath.Abs(path)
	dir, errDir := filepath.Abs(dir)
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"), errors.Join(errPath, errDir)
}

// Open opens and empties the files. That is done before the run, as a typing
// error should not show after an hour of it, and the result
// of an earlier run should not be taken for that of one that was killed. The error wraps [launch.ErrUsage].
func (list Outputs) Open() error {
	for i, out := range list {
		file, err := os.Create(out.path)
		if err != nil {
			list.Close()
			return fmt.Errorf("%w: %s: %w; name a file that can be written", launch.ErrUsage, out.flag, err)
		}
		list[i].file = file
	}
	return nil
}

// Save writes the result to all of them, closes them and says so. The error
// names each file that is not complete.
func (list Outputs) Save(x *Result, say io.Writer) error {
	var failed error
	for i, out := range list {
		err := errors.Join(out.write(x, out.file), out.file.Close())
		list[i].file = nil
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("the run is over, but %s %s is not complete: %w; see the tables above, or run again",
				out.flag, out.path, err))
			continue
		}
		fmt.Fprintf(say, "%s %s is written\n", out.flag, out.path)
	}
	return failed
}

// Close closes what is still open, when there is nothing to save.
func (list Outputs) Close() {
	for i, out := range list {
		if out.file != nil {
			out.file.Close()
			list[i].file = nil
		}
	}
}
