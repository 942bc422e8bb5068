package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// journalSize is the size of each file: some 4,000 entries, which is what a busy node writes in two seconds.
	journalSize = 2 << 20
	// journalHeader is where the entries begin.
	journalHeader = 64
	// entryHeader is the length of what precedes an entry's ID and value.
	entryHeader = 26
	// epochAt is where in it the epoch is.
	epochAt = 8
	// journalPause is how long the store goes without a journal, after it could not make its files, before it tries again.
	journalPause = time.Minute
)

// journalMagic begins each file.
var journalMagic = []byte("katbox journal 1")

// journalSuffixes are those of the two files' names.
var journalSuffixes = [2]string{".journal-0", ".journal-1"}

// journalFile is one of the two files.
type journalFile struct {
	file *os.File
	end  int64 // where the next entry goes
	// newest is the number of the last entry in it.
	newest uint64
}

// header returns what a file of this database begins with.
func (s journalState) header() []byte {
	header := make([]byte, journalHeader)
	copy(header[copy(header, journalMagic):], s.database[:])
	binary.BigEndian.PutUint32(header[journalHeader-4:], crc32.Checksum(header[:journalHeader-4], castagnoli))
	return header
}

// encode returns the bytes of an entry:
//
//	4 bytes  CRC-32C over the rest and the database's ID
//	4 bytes  length of ID and value
//	8 bytes  epoch
//	8 bytes  number
//	2 bytes  length of the ID, and 1 << 15 if a value follows it
//	rest     ID and value
func (e entry) encode(s journalState) []byte {
	b := make([]byte, 4, entryHeader+len(e.id)+len(e.value))
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.id)+len(e.value)))
	b = binary.BigEndian.AppendUint64(b, s.epoch)
	b = binary.BigEndian.AppendUint64(b, e.number)
	length := uint16(len(e.id))
	if e.value != nil {
		length |= 1 << 15
	}
	b = binary.BigEndian.AppendUint16(b, length)
	b = append(append(b, e.id...), e.value...)
	binary.BigEndian.PutUint32(b, s.sum(b[4:]))
	return b
}

func (s journalState) sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(s.database[:], castagnoli), castagnoli, b)
}

// decode returns the first entry in b, and its length; false if there is no whole one of this epoch.
func (s journalState) decode(b []byte) (e entry, length int, ok bool) {
	if len(b) < entryHeader {
		return e, 0, false
	}
	body := binary.BigEndian.Uint32(b[4:])
	if int64(body) > int64(len(b)-entryHeader) || binary.BigEndian.Uint64(b[8:]) != s.epoch {
		return e, 0, false
	}
	b = b[:entryHeader+int(body)]
	id := binary.BigEndian.Uint16(b[24:])
	rest := b[entryHeader:]
	if binary.BigEndian.Uint32(b) != s.sum(b[4:]) || int(id&^(1<<15)) > len(rest) {
		return e, 0, false
	}
	e.number, e.id = binary.BigEndian.Uint64(b[16:]), volume.ID(rest[:id&^(1<<15)])
	if rest = rest[len(e.id):]; id&(1<<15) != 0 {
		e.value = bytes.Clone(rest)
		if e.value == nil {
			e.value = []byte{}
		}
	}
	return e, len(b), e.id != ""
}

// run returns the entries at the start of a file's content, as long as each has the number that follows.
func (s journalState) run(content []byte) (run []entry) {
	for {
		e, length, ok := s.decode(content)
		if !ok || len(run) > 0 && e.number != run[len(run)-1].number+1 {
			return run
		}
		run, content = append(run, e), content[length:]
	}
}

// after returns the entries of some runs that follow what is durable, without a gap.
func (s journalState) after(runs [][]entry) (all []entry) {
	runs = slices.DeleteFunc(runs, func(run []entry) bool { return len(run) == 0 })
	slices.SortFunc(runs, func(a, b []entry) int { return cmp.Compare(a[0].number, b[0].number) })
	next := s.durable + 1
	for _, run := range runs {
		for _, e := range run {
			if e.number == next {
				all = append(all, e)
				next++
			}
		}
	}
	return all
}

// readJournal reads the files of the journal beside path. Those of another database are set aside, and named. Entries say by
// themselves whose they are, so they count in a file whose header is damaged, too. lost is how many follow a gap, behind damage.
func readJournal(place *os.Root, path string, s journalState) (entries []entry, aside []string, lost int, err error) {
	var runs [][]entry
	var contents [][]byte
	for _, suffix := range journalSuffixes {
		name := filepath.Base(path) + suffix
		content, err := readJournalFile(place, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, errNotRegular):
			return nil, nil, 0, fmt.Errorf("%s cannot be used (%w); remove it and start again", path+suffix, err)
		case err != nil:
			return nil, nil, 0, fmt.Errorf("read %s: %w", path+suffix, err)
		case unfinished(content):
			continue
		}
		contents = append(contents, content)
		run := s.run(content[journalHeader:])
		if bytes.HasPrefix(content, s.header()) || len(run) > 0 {
			runs = append(runs, run)
			continue
		}
		to, err := setAside(place, name, content)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("set %s aside: %w", path+suffix, err)
		}
		aside = append(aside, filepath.Join(filepath.Dir(path), to))
	}
	entries = s.after(runs)
	return entries, aside, s.lost(contents, s.durable+uint64(len(entries))), nil
}

// setAside gives a journal of another database a name that no file has, and returns it.
func setAside(place *os.Root, name string, content []byte) (to string, err error) {
	to = name + ".of-" + hex.EncodeToString(content[16:24])
	for n := 2; ; n++ {
		if err := hasName(place.Lstat, to, nil); !errors.Is(err, fs.ErrExist) {
			return to, errors.Join(err, kernel.RenameIn(place, name, to))
		}
		to = fmt.Sprintf("%s.of-%x.%d", name, content[16:24], n)
	}
}

// lost returns how many entries were made after the newest one that counts: whole ones are left of them, behind one that
// is not.
func (s journalState) lost(contents [][]byte, newest uint64) int {
	highest := newest
	epoch := binary.BigEndian.AppendUint64(nil, s.epoch)
	for _, content := range contents {
		for at := 0; ; at++ {
			next := bytes.Index(content[at:], epoch)
			if next < 0 {
				break
			}
			if at += next; at < epochAt {
				continue
			}
			if e, _, ok := s.decode(content[at-epochAt:]); ok {
				highest = max(highest, e.number)
			}
		}
	}
	return int(highest - newest)
}

// unfinished reports whether a file was about to be made: its header comes last.
func unfinished(content []byte) bool {
	return len(content) < journalHeader || !slices.ContainsFunc(content[:journalHeader], func(b byte) bool { return b != 0 })
}

func readJournalFile(place *os.Root, name string) ([]byte, error) {
	open := func(name string, flag int) (*os.File, error) {
		return place.OpenFile(name, flag, 0) //nolint:forbidigo // it changes nothing
	}
	file, err := openRegular(place.Lstat, open, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readInPages(file)
}

// readInPages reads a file of the journal, so that what is not in memory is there page by page then. The kernel keeps
// together what is written together, or read ahead, and each write goes through all pages of the part that it is in: an
// entry would take as much CPU as the rest of a call. This is only a hint.
func readInPages(file *os.File) ([]byte, error) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM)
	content := make([]byte, journalSize)
	n, err := file.ReadAt(content, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return content[:n], err
}

// prepareJournal makes what is missing of the files, with the lock held, if a journal is wanted.
func (s *Store) prepareJournal() {
	j := s.journal
	if !s.journals || !j.begun || j.files[0] != nil || j.missing != nil && time.Since(j.lookedAt) < journalPause {
		return
	}
	files, err := j.openFiles(s.db.path, s.db.file)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.files, j.missing, j.lookedAt = files, err, time.Now()
}

// openFiles opens both files, and makes those that are not there.
func (j *journal) openFiles(path string, database *os.File) (files [2]*journalFile, err error) {
	place, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return files, err
	}
	defer place.Close()
	// It stays that directory whatever is mounted over it.
	if err := hasName(place.Lstat, filepath.Base(path), database); err != nil {
		return files, err
	}
	for i, suffix := range journalSuffixes {
		file, err := openJournalFile(place, filepath.Base(path)+suffix, j.header())
		if err != nil {
			if files[0] != nil {
				err = errors.Join(err, files[0].file.Close())
			}
			return [2]*journalFile{}, fmt.Errorf("make %s: %w", path+suffix, err)
		}
		files[i] = &journalFile{file: file, end: journalHeader}
	}
	return files, nil
}

// openJournalFile opens a file whose blocks are all written, and makes it so if it is not.
func openJournalFile(place *os.Root, name string, header []byte) (_ *os.File, err error) {
	file, err := openRegular(place.Lstat, func(name string, flag int) (*os.File, error) {
		return kernel.CreateIn(place, name, flag, 0o600)
	}, name, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	is := make([]byte, len(header))
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if _, err = file.ReadAt(is, 0); err == nil && bytes.Equal(is, header) && info.Size() == journalSize && !copiesOnWrite(file) {
		return file, nil
	}
	if err = fillJournalFile(file, header); err != nil {
		return nil, errors.Join(err, kernel.Truncate(file, 0)) // where there is no room for it, others need that
	}
	return file, nil
}

// fillJournalFile makes a file one without entries, whose blocks are all written.
func fillJournalFile(file *os.File, header []byte) error {
	if err := kernel.Truncate(file, 0); err != nil {
		return err
	}
	overwriteInPlace(file)
	if copiesOnWrite(file) {
		return errCopies
	}
	err := kernel.WriteAt(file, make([]byte, journalSize), 0)
	if err == nil {
		err = kernel.Sync(file)
	}
	if err == nil {
		err = kernel.WriteAt(file, header, 0)
	}
	if err == nil {
		err = kernel.Sync(file)
	}
	if err == nil {
		_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED) // it is in memory as one part
		_, err = readInPages(file)
	}
	return err
}

// close closes the files. No entry is written any more.
func (j *journal) close() (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.missing = errNoJournal
	for i, f := range j.files {
		if f != nil {
			err = errors.Join(err, f.file.Close())
			j.files[i] = nil
		}
	}
	return err
}
