package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// mostWaiting bounds the records that wait for one sync; who comes later waits
	// to wait.
	mostWaiting = 1024
	// journalSize is the size of the file. Some 100,000 calls later, records are
	// written over the first ones.
	journalSize = 16 << 20
)

// errTooLong refuses records that do not fit into the file.
var errTooLong = errors.New("the floor's records are longer than their file")

// journal is a file that records are written to, one after the other, those that wait
// together with one write and one sync.
//
// All of the file is written when it is opened. So no record changes its size or takes a
// block, and a sync writes the record and nothing else: the file system has nothing to
// commit to its own journal. No store can make a record durable for less.
type journal struct {
	file    *os.File
	at      int64 // where the next record goes
	waiting chan entry
}

// entry is a record that waits.
type entry struct {
	record []byte
	synced chan error
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the floor's records: %w", err)
	}
	if err := writeOnce(file); err != nil {
		return nil, errors.Join(fmt.Errorf("write the file of the floor's records: %w", err), file.Close())
	}
	j := &journal{file: file, waiting: make(chan entry, mostWaiting)}
	go j.commit()
	return j, nil
}

// writeOnce gives the file its size and blocks. To write a block that is only allocated
// would change what the file system knows of it.
func writeOnce(file *os.File) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, journalSize)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return os.NewSyscallError("fallocate", err)
	}
	nothing := make([]byte, 64<<10)
	for at := int64(0); at < journalSize; at += int64(len(nothing)) {
		if _, err := file.WriteAt(nothing, at); err != nil {
			return err
		}
	}
	return file.Sync()
}

// append returns once a record of the words is durable.
func (j *journal) append(kind byte, words ...string) error {
	record := []byte{kind}
	for _, word := range words {
		record = append(append(record, ' '), word...)
	}
	e := entry{record: append(record, '\n'), synced: make(chan error, 1)}
	j.waiting <- e
	return <-e.synced
}

// commit makes durable what waits, over and over, until the journal is closed.
func (j *journal) commit() {
	var entries []entry
	var batch []byte
	for first := range j.waiting {
		entries, batch = append(entries[:0], first), append(batch[:0], first.record...)
		for more := true; more; {
			select {
			case e, ok := <-j.waiting:
				if more = ok; ok {
					entries, batch = append(entries, e), append(batch, e.record...)
				}
			default:
				more = false
			}
		}
		err := j.write(batch)
		for _, e := range entries {
			e.synced <- err
		}
	}
}

// write makes records durable, behind the last ones or, where they do not fit there, at the
// beginning of the file.
func (j *journal) write(batch []byte) error {
	length := int64(len(batch))
	if length > journalSize {
		return fmt.Errorf("%w: %d bytes", errTooLong, length)
	}
	if j.at+length > journalSize {
		j.at = 0
	}
	if _, err := j.file.WriteAt(batch, j.at); err != nil {
		return err
	}
	j.at += length
	return os.NewSyscallError("fdatasync", unix.Fdatasync(int(j.file.Fd())))
}

// close ends a journal to which nothing is appended any more.
func (j *journal) close() error {
	close(j.waiting)
	return j.file.Close()
}
