package verbs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/model/volume"
)

// Part is one of several volumes that are copied.
type Part struct {
	Volume Volume
	// Pod and Name are the names of the pod and of the volume in it. The copy goes into the directory
	// Name of the directory Pod.
	Pod, Name string
}

// CopyAll copies what is at a path of several volumes, each into a directory of its own below dest. It
// goes on with the others if one cannot be copied. A volume that an earlier run has copied is left as
// it is, so that the same command goes on where it was cut.
func (s *Session) CopyAll(ctx context.Context, parts []Part, ref, dest string, o *CopyOptions) error {
	switch err := o.Check(dest); {
	case err != nil:
		return err
	case dest == ToStdout:
		return WrongUsage("standard output takes one volume, and there are %d: give a directory as DEST, or --last", len(parts))
	}
	what := fmt.Sprintf("%d volumes", len(parts))
	if len(parts) == 1 {
		what = "1 volume"
	}
	size, known := int64(0), true
	for _, p := range parts {
		size, known = size+p.Volume.Bytes, known && p.Volume.Bytes > 0
	}
	if known && ref == "" {
		what += ", " + terminal.Size(size)
	} else {
		size = 0
	}
	all := copyAll{CopyOptions: o, unmatched: map[int]int{}, s: s, ref: ref, dest: dest, total: terminal.NewProgress(s.Stderr, what, 0, size)}
	failed := 0
	for i, p := range parts {
		if i > 0 {
			p.Volume.Reader = patient{p.Volume.Reader}
		}
		err := all.copy(ctx, p)
		all.total.End()
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil, errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), CodeOf(err) == CodeUsage:
			return err
		}
		failed++
		fmt.Fprintf(s.Stderr, "%s: %s\n", terminal.Clean(p.Volume.Target), terminal.Clean(volume.OneLine(err)))
	}
	for place := range o.exclude {
		if all.unmatched[place] > 0 && all.unmatched[place] == all.archives {
			fmt.Fprintln(s.Stderr, o.unmatchedNote(place))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d volumes were not copied; the same command leaves those that were as they are", failed, len(parts))
	}
	if all.total != nil {
		fmt.Fprintf(s.Stderr, "%s: all is in %s\n", what, Quoted(dest))
	}
	return nil
}

// copyAll is one run of CopyAll.
type copyAll struct {
	*CopyOptions
	s         *Session
	ref, dest string
	total     *terminal.Progress
	// unmatched counts for each place in exclude the volumes in which it left nothing out; archives are those that were read.
	unmatched map[int]int
	archives  int
}

func (a *copyAll) copy(ctx context.Context, p Part) error {
	c, err := a.s.copying(ctx, p.Volume, a.ref, a.CopyOptions)
	if err != nil {
		return err
	}
	c.total, c.part, c.unmatched, c.archives = a.total, true, a.unmatched, &a.archives
	dir, err := a.directory(p)
	if err != nil {
		return err
	}
	switch {
	case c.unpacks():
		return c.treeOnce(ctx, filepath.Join(dir, p.Name))
	case c.path.IsTop():
		return c.fileOnce(ctx, filepath.Join(dir, p.Name+".tar"))
	}
	name, err := c.fileName()
	if err == nil {
		dir, err = enter(dir, p.Name)
	}
	if err != nil {
		return err
	}
	return c.fileOnce(ctx, filepath.Join(dir, name))
}

// directory makes the directory of the pod.
func (a *copyAll) directory(p Part) (string, error) {
	for _, name := range []string{p.Pod, p.Name} {
		if volume.ObjectName(name) == "" || name[0] == '.' || !filepath.IsLocal(name) {
			return "", fmt.Errorf("no directory can be called %s on this system", Quoted(name))
		}
	}
	if err := os.Mkdir(a.dest, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return enter(a.dest, p.Pod)
}

// enter makes a directory if it does not exist. A symbolic link is not followed.
func enter(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory, and nothing is followed: remove it", Quoted(path))
	}
	return path, err
}

// treeOnce copies a directory. If it is there, and has the time of the original, an earlier run has copied
// it.
func (c *copying) treeOnce(ctx context.Context, dest string) error {
	info, err := os.Lstat(dest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.newTree(ctx, dest)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory, and nothing is followed: remove it", Quoted(dest))
	case c.overwrite:
		if err := c.tree(ctx, dest); err != nil {
			return err
		}
		c.setTime(dest)
		return nil
	case c.hasTime(dest, info.ModTime()):
		c.isThere(dest)
		return nil
	}
	return fmt.Errorf("%s exists already, and is not a copy of this directory; --overwrite copies into it", Quoted(dest))
}

// fileOnce copies to a file, unless an earlier run has.
func (c *copying) fileOnce(ctx context.Context, dest string) error {
	info, err := os.Lstat(dest)
	if err == nil && !c.overwrite && info.Mode().IsRegular() && c.isCopy(dest, info) {
		c.isThere(dest)
		return nil
	}
	return c.toFile(ctx, dest)
}

// isCopy reports whether a file has the time of the original, and its size if that is known.
func (c *copying) isCopy(dest string, info fs.FileInfo) bool {
	return (c.archive() || info.Size() == c.entry.Size) && c.hasTime(dest, info.ModTime())
}

// isThere says that nothing is done. The earlier run may have left out what this one would copy.
func (c *copying) isThere(dest string) {
	c.note("%s is there already; --overwrite copies it again", Quoted(dest))
	if c.entry.Type == api.File {
		c.total.Add(c.entry.Size)
	} else {
		c.total.Add(c.v.Bytes)
	}
}
