package content

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// fillDir is the directory in a volume that takes all the room there is.
	fillDir = "soak-fillDir"
	// largestPiece is how much is asked for at a time, in bytes: a call for
	// more would hold up the end of the run.
	largestPiece = 64 << 20
	// mostRounds is how often a disk is filled on which the driver makes room
	// meanwhile.
	mostRounds = 1000
	// spare is what a file system may say is free although it gives none of it
	// away, as a share of all: a part in so many.
	spare = 1000
)

// FillDisk is a pod that runs fillDir: it writes in a volume until there is no
// room left on the file system, not for a byte. When it returns, the file
// system says so too (statfs); release removes what it wrote, and is harmless
// when the volume is gone. If it fails or ctx ends before, nothing is left
// behind. There may be one for each volume at a time.
func FillDisk(ctx context.Context, dir string) (release func() error, err error) {
	return fillUp(ctx, dir, fillBlocks, func(st unix.Statfs_t) bool { return st.Bavail <= st.Blocks/spare })
}

// fillUp repeats fill until the file system is full and says so. fill returns
// nil when it got ENOSPC or EDQUOT for the least it can ask for.
func fillUp(
	ctx context.Context, dir string,
	fill func(ctx context.Context, in *os.Root, round int) error, full func(unix.Statfs_t) bool,
) (release func() error, err error) {
	remove := func() error { return removeFill(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("fill the file system of %s: %w", dir, err), remove())
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for round := range mostRounds {
		// On a full disk it cannot be made, until the driver makes room.
		if err := root.Mkdir(fillDir, 0o700); err != nil && !outOfRoom(err) && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		if err := fill(ctx, root, round); err != nil {
			return nil, err
		}
		var st unix.Statfs_t
		if err := retried(func() error { return unix.Statfs(dir, &st) }); err != nil {
			return nil, fmt.Errorf("statfs: %w", err)
		}
		if full(st) {
			return remove, nil
		}
	}
	return nil, fmt.Errorf("the driver made room %d times meanwhile, or statfs never says that there is none", mostRounds)
}

func removeFill(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s to make room: %w", dir, err)
	}
	defer root.Close()
	if err := root.RemoveAll(fillDir); err != nil {
		return fmt.Errorf("make room in %s: %w", dir, err)
	}
	return nil
}

func outOfRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// fillBlocks takes all blocks.
func fillBlocks(ctx context.Context, in *os.Root, round int) error {
	f, err := in.OpenFile(fmt.Sprintf("%s/%d", fillDir, round), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrNotExist), outOfRoom(err):
		return nil // there is no room even for a name
	case err != nil:
		return err
	}
	size, err := allocate(ctx, f)
	if err == nil {
		err = write(ctx, f, size)
	}
	return errors.Join(err, f.Close())
}

// allocate takes blocks without writing them, in smaller and smaller pieces. It
// returns the size of the file. A file system that cannot do it leaves
// everything to write.
func allocate(ctx context.Context, f *os.File) (size int64, err error) {
	for piece := int64(largestPiece); piece >= pieceSize; {
		if err := ctx.Err(); err != nil {
			return size, context.Cause(ctx)
		}
		err := retried(func() error { return unix.Fallocate(int(f.Fd()), 0, size, piece) })
		switch {
		case err == nil:
			size += piece
		case outOfRoom(err):
			piece /= 2
		case errors.Is(err, unix.EOPNOTSUPP):
			return size, nil
		default:
			return size, fmt.Errorf("fallocate: %w", err)
		}
	}
	return size, nil
}

// write writes from an offset on, in smaller and smaller pieces, until there is
// no room for a byte.
func write(ctx context.Context, f *os.File, offset int64) error {
	zeros := make([]byte, pieceSize)
	for piece := pieceSize; piece >= 1; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := f.WriteAt(zeros[:piece], offset)
		offset += int64(n)
		switch {
		case err == nil:
		case outOfRoom(err):
			piece /= 2
		default:
			return err
		}
	}
	// What was written into memory only may turn out to take less room.
	if err := f.Sync(); err != nil && !outOfRoom(err) {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}
