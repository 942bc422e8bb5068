package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// writtenFile is how large the file is that is written over and over: more than the kernel lets wait for the disk.
	writtenFile = 2 << 30
	// writtenAtOnce is what one call of it writes.
	writtenAtOnce = 1 << 20
)

// writeWithoutEnd writes to the disk as fast as it can, as a pod that extracts an archive does, until stop is called.
func (s *environment) writeWithoutEnd() (stop func() error) {
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- writeUntil(filepath.Join(s.layout.Work, "written"), end) }()
	return func() error {
		close(end)
		return <-ended
	}
}

func writeUntil(path string, end <-chan struct{}) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write without end: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	content := make([]byte, writtenAtOnce)
	for at := int64(0); ; at = (at + writtenAtOnce) % writtenFile {
		select {
		case <-end:
			return nil
		default:
		}
		if _, err := file.WriteAt(content, at); err != nil {
			return fmt.Errorf("write without end: %w", err)
		}
	}
}
