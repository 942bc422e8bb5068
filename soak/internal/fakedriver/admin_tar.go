package fakedriver

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/sealed"
)

// serveTar streams a tar of a directory.
func (r *run) serveTar(w http.ResponseWriter, q *http.Request, v record, top string, out *stream) {
	if _, _, err := r.find(v, top); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-tar")
	word := q.Header.Get(sealed.Header)
	w.Header().Set(sealed.Header, word)
	w.Header().Set("Katbox-Offset", fmt.Sprint(out.skip))
	body := sealed.NewWriter(w, word)
	out.to = body
	skipped, err := r.writeTar(out, v, top, q.URL.Query()["exclude"])
	if err != nil {
		panic(http.ErrAbortHandler) // so that the client sees it
	}
	if err := body.Seal(sealed.Notes{Skipped: skipped}); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// writeTar writes a tar of what is below a directory, and counts what is no part
// of it.
func (r *run) writeTar(out io.Writer, v record, top string, exclude []string) (skipped int, err error) {
	root := filepath.Join(r.data(v), top)
	mounts, err := mountsBelow(r.data(v))
	if err != nil {
		return 0, err
	}
	archive := tar.NewWriter(out)
	less := r.cfg.Bug == TarsLess
	err = filepath.WalkDir(root, func(full string, e fs.DirEntry, err error) error {
		if err != nil || full == root {
			return err
		}
		name := strings.TrimPrefix(full, root+"/")
		if slices.ContainsFunc(exclude, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(mounts, full) && r.cfg.Bug != ReadsMounts:
			skipped++
			return fs.SkipDir
		case info.Mode().IsRegular() && less:
			less = false
			return nil
		case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
			skipped++
			return nil
		}
		return r.writeEntry(archive, full, name, info)
	})
	if err != nil {
		return skipped, err
	}
	return skipped, archive.Close()
}

// writeEntry writes one file, directory or symlink. It is not to be followed any
// more.
func (r *run) writeEntry(archive *tar.Writer, full, name string, info fs.FileInfo) error {
	target := ""
	if info.Mode().Type() == fs.ModeSymlink {
		target, _ = os.Readlink(full)
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name = name
	if info.IsDir() {
		header.Name += "/"
	}
	// A stream that is resumed has to be the same again, and the soak itself reads
	// the markers.
	header.AccessTime, header.ChangeTime = time.Time{}, time.Time{}
	header.Format = tar.FormatPAX
	header.Mode &^= 0o6000
	if err := archive.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.OpenFile(full, unix.O_RDONLY|unix.O_NOATIME, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(archive, f, info.Size())
	return err
}
