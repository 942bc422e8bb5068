package unpack

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// folder is an open directory of a system. A name is one element of a path, neither "." nor "..". No
// method follows a symbolic link.
type folder interface {
	// enter opens a directory in it. The error is errNoDirectory for anything else.
	enter(name string) (folder, error)
	// makeDirectory, create and the two below fail with fs.ErrExist if something has the name.
	makeDirectory(name string, mode fs.FileMode) error
	create(name string, mode fs.FileMode) (*os.File, error)
	// link makes a hard link to a file in another directory, symlink a symbolic link.
	link(name string, in folder, to string) error
	symlink(name, to string) error
	// rename gives something in the directory another name, and with replace takes that name from
	// something else. Without it the error is fs.ErrExist then, or errNotAtOnce if the file system
	// cannot look and rename in one step.
	rename(name, to string, replace bool) error
	// list returns the names that are in the directory, in any order.
	list() ([]string, error)
	// remove removes a file or a symbolic link.
	remove(name string) error
	// look describes what has a name, self the directory. The error is fs.ErrNotExist if nothing has it.
	look(name string) (thing, error)
	self() (thing, error)
	// grant gives the owner every permission on a directory in it, and returns those that it had.
	grant(name string) (before fs.FileMode, err error)
	// setTime sets when something was changed last.
	setTime(name string, modified time.Time) error
	// complete sets the same of the directory, and takes the permissions from it that mode lacks; restrict does that
	// alone. A file system may keep neither.
	complete(mode fs.FileMode, modified time.Time) error
	restrict(mode fs.FileMode) error
	close()
}

var (
	errNoDirectory = errors.New("it is no directory")
	errNotAtOnce   = errors.New("the file system cannot rename without replacing")
)

// thing is a file, a directory or something else.
type thing struct {
	// kind has the bits of fs.ModeType.
	kind fs.FileMode
	// info says which it is, or else dev and ino do.
	info     fs.FileInfo
	dev, ino uint64
}

// same reports whether two things are one.
func (t thing) same(other thing) bool {
	if t.info != nil {
		return os.SameFile(t.info, other.info)
	}
	return t.dev == other.dev && t.ino == other.ino
}
