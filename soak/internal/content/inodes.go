package content

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// filesPerDirectory keeps directories small: in one large one each file
	// would take longer than the last.
	filesPerDirectory = 1000
	// spareInodes is how many inodes a file system may say are free although it
	// gives none of them away.
	spareInodes = 64
)

// FillInodes is FillDisk with empty files: it makes them until no inode is left.
// A file system that has no limit is refused.
func FillInodes(ctx context.Context, dir string) (release func() error, err error) {
	var st unix.Statfs_t
	if err := retried(func() error { return unix.Statfs(dir, &st) }); err != nil {
		return nil, fmt.Errorf("statfs %s: %w", dir, err)
	}
	if st.Files == 0 {
		return nil, fmt.Errorf("the file system of %s has no limit of inodes; use another one", dir)
	}
	return fillUp(ctx, dir, makeFiles, func(st unix.Statfs_t) bool { return st.Ffree <= spareInodes })
}

// makeFiles makes directories full of empty files.
func makeFiles(ctx context.Context, in *os.Root, round int) error {
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		name := fmt.Sprintf("%s/%d-%d", fillDir, round, i)
		err := in.Mkdir(name, 0o700)
		if err == nil {
			err = fillDirectory(in, name)
		}
		switch {
		case outOfRoom(err), errors.Is(err, os.ErrNotExist): // not even fillDir itself could be made
			return nil
		case err != nil:
			return err
		}
	}
}

func fillDirectory(in *os.Root, name string) error {
	dir, err := in.OpenRoot(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for i := range filesPerDirectory {
		f, err := dir.OpenFile(fmt.Sprint(i), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
