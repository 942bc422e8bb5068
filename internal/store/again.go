package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/volume"
)

// mostTries bounds the tries of a transaction that finds no room. Of 35 that found
// none, 33 succeeded at the second and the others at the third.
const mostTries = 8

// again runs a transaction once more when it found no room, after makeRoom. One
// that failed has left nothing behind.
func again(transaction, makeRoom func() error) error {
	err := volume.WantsRoom(transaction())
	for range mostTries - 1 {
		if !errors.Is(err, volume.ErrNoSpace) || makeRoom() != nil {
			break
		}
		err = volume.WantsRoom(transaction())
	}
	return err
}

// errNoRoomToMake is what keeps a transaction from being tried again.
var errNoRoomToMake = errors.New("nothing can be done for more room")

// makeRoom has btrfs end its own transaction, which gives back what that had put
// aside. With its trees full, even overwriting a block in place takes a little
// room there, and the space of what has just been deleted is not room before.
func makeRoom(file *os.File) error {
	if !onBtrfs(file) {
		return errNoRoomToMake
	}
	return unix.Syncfs(int(file.Fd()))
}
