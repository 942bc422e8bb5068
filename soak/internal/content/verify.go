package content

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mostDifferences is how many differences are told: when all is lost, the first
// few say so.
const mostDifferences = 5

// Verify returns nil if everything that Fill wrote is there and unchanged:
// names, types, sizes, bytes, links and permissions. The error tells the first
// differences. The marker apart, it reads files without changing their access
// times, as far as it has the right to.
func Verify(dir string, s Spec, filled Filled) error {
	var differences []error
	if filled.Marker {
		if _, err := Look(dir, s); err != nil {
			differences = append(differences, err)
		}
	}
	w, err := newWalker(dir)
	if err != nil {
		return errors.Join(append(differences, err)...)
	}
	defer w.close()
	names := s.linkCounts(filled.Entries)
	i := 0
	for e := range s.entries() {
		if i == filled.Entries {
			break
		}
		i++
		err := w.enter(e.in)
		if err == nil {
			err = w.check(e, 1+names[e.name])
		}
		if err == nil {
			continue
		}
		differences = append(differences, fmt.Errorf("%s in %s: %w", e, dir, err))
		if len(differences) == mostDifferences {
			differences = append(differences,
				fmt.Errorf("%d of %d entries of %s were not looked at any more", filled.Entries-i, filled.Entries, dir))
			break
		}
	}
	return errors.Join(differences...)
}

// linkCounts returns how many hard links the files have beside their own names.
// All of them are in the volume's own directory.
func (s Spec) linkCounts(entries int) map[string]int {
	counts := make(map[string]int)
	if !s.Content.Links {
		return counts
	}
	i := 0
	for e := range s.entries() {
		if i == entries {
			break
		}
		i++
		if e.kind == hardlink {
			counts[e.to]++
		}
	}
	return counts
}

var typeBits = map[kind]uint32{
	file: unix.S_IFREG, sparse: unix.S_IFREG, directory: unix.S_IFDIR, symlink: unix.S_IFLNK,
	hardlink: unix.S_IFREG, fifo: unix.S_IFIFO, socket: unix.S_IFSOCK,
}

// check compares an entry of the present directory with what it has to be.
func (w *walker) check(e entry, names int) error {
	st, err := w.stat(e.name)
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != typeBits[e.kind] {
		return fmt.Errorf("its type is %#o and should be %#o", st.Mode&unix.S_IFMT, typeBits[e.kind])
	}
	switch e.kind {
	case symlink:
		return w.checkSymlink(e)
	case hardlink:
		return w.checkHardlink(e, st)
	}
	if got := st.Mode & 0o7777; got != e.mode {
		return fmt.Errorf("its permissions are %#o and should be %#o", got, e.mode)
	}
	switch e.kind {
	case file, sparse:
		return w.checkFile(e, st, names)
	}
	return nil
}

func (w *walker) stat(name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := retried(func() error { return unix.Fstatat(w.at, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return st, fmt.Errorf("stat: %w", err)
	}
	return st, nil
}

func (w *walker) checkSymlink(e entry) error {
	buffer := make([]byte, len(e.to)+1) // the byte more tells a longer one
	n, err := retriedFD(func() (int, error) { return unix.Readlinkat(w.at, e.name, buffer) })
	if err != nil {
		return fmt.Errorf("readlink: %w", err)
	}
	if got := string(buffer[:n]); got != e.to {
		return fmt.Errorf("it leads to %.100q and should lead to %.100q", got, e.to)
	}
	return nil
}

func (w *walker) checkHardlink(e entry, st unix.Stat_t) error {
	of, err := w.stat(e.to)
	if err != nil {
		return fmt.Errorf("%s, which it is a link of: %w", e.to, err)
	}
	if of.Ino != st.Ino || of.Dev != st.Dev {
		return fmt.Errorf("it is no link of %s any more", e.to)
	}
	return nil
}

func (w *walker) checkFile(e entry, st unix.Stat_t, names int) error {
	if st.Size != e.size {
		return fmt.Errorf("its size is %d bytes and should be %d", st.Size, e.size)
	}
	if uint64(st.Nlink) != uint64(names) {
		return fmt.Errorf("it has %d names and should have %d", st.Nlink, names)
	}
	f, err := w.reader(e.name)
	if err != nil {
		return err
	}
	defer f.Close()
	var got io.Reader = f
	wanted := e.bytes()
	if e.kind == sparse {
		// Its bytes on the disk, in units of 512, must not be those of its size.
		if st.Blocks*512 > e.size/2 {
			return fmt.Errorf("it takes %d bytes on the disk, so that its holes were filled", st.Blocks*512)
		}
		got, wanted = io.NewSectionReader(f, e.size/2, islandSize), e.island()
	}
	equal, err := same(got, wanted, st.Size)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !equal {
		return errors.New("its bytes are not what was written")
	}
	return nil
}

// reader opens a file to read it without a trace. Without that right, which an
// owner and root have, it leaves one.
func (w *walker) reader(name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK
	f, err := w.file(name, flags|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) {
		return w.file(name, flags, 0)
	}
	return f, err
}
