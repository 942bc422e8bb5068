package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// output is a file that the result goes to in the end.
type output struct {
	flag  string
	path  string
	write func(outcome, io.Writer) error
	file  *os.File
}

// outputs are the files that were asked for.
type outputs []output

// outputs lists what the command line asks for, not opened yet.
func (o options) outputs() outputs {
	var wanted outputs
	for _, out := range []output{
		{flag: "--json", path: o.json, write: writeJSON},
		{flag: "--report", path: o.report, write: writePage},
	} {
		if out.path != "" {
			wanted = append(wanted, out)
		}
	}
	return wanted
}

// check refuses places that cannot hold what they should. Its error wraps
// errUsage.
func (list outputs) check(dir string) error {
	for i, out := range list {
		for _, other := range list[:i] {
			if filepath.Clean(out.path) == filepath.Clean(other.path) {
				return fmt.Errorf("%w: %s and %s are both %s; name two files", errUsage, other.flag, out.flag, out.path)
			}
		}
		if dir != "" && strings.HasPrefix(filepath.Clean(out.path), filepath.Clean(dir)+"/") {
			return fmt.Errorf("%w: %s %s lies inside --dir, which is emptied after a clean run; name another place",
				errUsage, out.flag, out.path)
		}
	}
	return nil
}

// open opens and empties the files. That is done before the run, as a typing
// error should not show after an hour of it, and nobody should take the result
// of an earlier run for that of one that was killed. Its error wraps errUsage.
func (list outputs) open() error {
	for i, out := range list {
		file, err := os.Create(out.path)
		if err != nil {
			list.close()
			return fmt.Errorf("%w: %s: %w; name a file that can be written", errUsage, out.flag, err)
		}
		list[i].file = file
	}
	return nil
}

// save writes the outcome to all of them, and says so.
func (list outputs) save(x outcome, say io.Writer) error {
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

// close closes what is still open, when there is nothing to save.
func (list outputs) close() {
	for _, out := range list {
		if out.file != nil {
			out.file.Close()
		}
	}
}
