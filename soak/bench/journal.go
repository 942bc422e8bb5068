package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mostWaiting bounds the records that wait for one sync; who comes later waits
// to wait.
const mostWaiting = 1024

// journal is a file that records are appended to, those that wait together with
// one write and one sync.
type journal struct {
	file    *os.File
	waiting chan entry
}

// entry is a record that waits.
type entry struct {
	record []byte
	synced chan error
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the floor's records: %w", err)
	}
	j := &journal{file: file, waiting: make(chan entry, mostWaiting)}
	go j.commit()
	return j, nil
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
		_, err := j.file.Write(batch)
		if err == nil {
			err = unix.Fdatasync(int(j.file.Fd()))
		}
		for _, e := range entries {
			e.synced <- err
		}
	}
}

// close ends a journal that nobody appends to any more.
func (j *journal) close() error {
	close(j.waiting)
	return j.file.Close()
}
