package scratch

import (
	"errors"

	"golang.org/x/sys/unix"
)

// errNowhere: there is no place further up.
var errNowhere = errors.New("no place further up")

// moveUp moves a directory that lies too deep up to where it does not, to be
// erased once the rest is.
//
// That is the trash, or a directory moved there before: its own if there is room
// for one more name. A subvolume of btrfs keeps its directories, all but those
// that are subvolumes themselves, and a full disk may have no room in the trash;
// they go to the highest directory of the same subvolume then. errNowhere says
// that they are in that one, which is not so of what is in them: to go down one
// directory more is enough.
func (e *eraser) moveUp(at int, name string) error {
	err := e.moveToOverflow(at, name)
	if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	highest, statErr := e.highest()
	switch {
	case statErr != nil:
		return statErr
	case highest == len(e.branch)-1:
		return errNowhere
	}
	err = e.rename(at, name, e.branch[highest].fd, freshName())
	e.branch[highest].grew = e.branch[highest].grew || err == nil
	return err
}

func (e *eraser) moveToOverflow(at int, name string) error {
	if e.overflow >= 0 && e.rename(at, name, e.overflow, freshName()) == nil {
		return nil
	}
	// There is none yet, or it takes no more: a pod chose its attributes. A new
	// one is the directory itself, because with a full disk there may be no room
	// to make one.
	fresh := partName(e.entry)
	if err := e.rename(at, name, e.dir.trashFD(), fresh); err != nil {
		return err
	}
	e.closeOverflow()
	e.moved = append(e.moved, fresh)
	if fd, err := e.dir.openChild(e.dir.trashFD(), fresh); err == nil {
		e.overflow = fd
	}
	return nil
}

// takeMoved returns the name in the trash of something that was moved up, "" if
// there is nothing, and forgets it.
func (e *eraser) takeMoved() string {
	if len(e.moved) == 0 {
		return ""
	}
	e.closeOverflow()
	last := len(e.moved) - 1
	name := e.moved[last]
	e.moved = e.moved[:last]
	return name
}

func (e *eraser) closeOverflow() {
	if e.overflow >= 0 {
		unix.Close(e.overflow)
		e.overflow = -1
	}
}

// rename moves a directory, a read-only subvolume too.
func (e *eraser) rename(fromDir int, from string, toDir int, to string) error {
	err := e.dir.rename(fromDir, from, toDir, to)
	if refused(err) && e.release(fromDir, from) {
		err = e.dir.rename(fromDir, from, toDir, to)
	}
	return err
}

// highest returns the index of the highest directory of the branch that is in
// the same subvolume as the lowest. Each subvolume has a device number.
func (e *eraser) highest() (int, error) {
	highest := len(e.branch) - 1
	var lowest, above unix.Stat_t
	if err := unix.Fstat(e.branch[highest].fd, &lowest); err != nil {
		return 0, err
	}
	for ; highest > 0; highest-- {
		if err := unix.Fstat(e.branch[highest-1].fd, &above); err != nil {
			return 0, err
		}
		if above.Dev != lowest.Dev {
			break
		}
	}
	return highest, nil
}
