package verbs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// partialSuffix is of the name that a copy has until it is complete; etagSuffix is of the file beside it
	// that says what it is the beginning of.
	partialSuffix = ".partial"
	etagSuffix    = ".partial.etag"
	// nameMax is how long a name may be on most file systems, in bytes.
	nameMax = 255
)

// partialNames returns the names of a copy until it is complete, and of the file that says what it is the beginning of.
// Where those of dest with the suffixes are too long they are short ones that stand for it.
func partialNames(dest string) (partial, state string) {
	dir, base := filepath.Split(dest)
	if len(base)+len(etagSuffix) <= nameMax {
		if _, err := os.Lstat(dest + etagSuffix); !errors.Is(err, syscall.ENAMETOOLONG) {
			return dest + partialSuffix, dest + etagSuffix
		}
	}
	short := fmt.Sprintf("%skatbox-%x", dir, sha256.Sum256([]byte(base)))[:len(dir)+24]
	return short + partialSuffix, short + etagSuffix
}

// setTime gives a copy the time of the original, by which a later run knows it.
func (c *copying) setTime(name string) {
	if err := os.Chtimes(name, c.entry.ModTime, c.entry.ModTime); err != nil {
		c.note("%s cannot have the time of the original: %s", Quoted(name), err)
	}
}

// hasTime reports whether a file or a directory has the time of the original, as far as the file system keeps it: some
// keep no fractions of a second, or only even seconds. So it is compared with what a new file beside it keeps.
func (c *copying) hasTime(name string, is time.Time) bool {
	if is.Equal(c.entry.ModTime) {
		return true
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".katbox-*")
	if err != nil {
		return false
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Close(), os.Chtimes(f.Name(), c.entry.ModTime, c.entry.ModTime)); err != nil {
		return false
	}
	info, err := os.Lstat(f.Name())
	return err == nil && info.ModTime().Equal(is)
}
