package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// fillers is how many make directories at the same time. More would wait for the
// lock of the directory that they make them in.
const fillers = 2

// fill makes the data directories of volumes, or only those of their pods.
func fill(work string, list []names, podsOnly bool) error {
	errs := make([]error, fillers)
	var wg sync.WaitGroup
	for f := range fillers {
		wg.Go(func() {
			for i := f; i < len(list) && errs[f] == nil; i += fillers {
				errs[f] = fillOne(work, list[i], podsOnly)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("prepare retained volumes: %w", err)
		}
	}
	return nil
}

func fillOne(work string, n names, podOnly bool) error {
	pod := filepath.Join(work, n.pod)
	if err := unix.Mkdir(pod, 0o755); err != nil {
		return fmt.Errorf("mkdir %s: %w", pod, err)
	}
	if podOnly {
		return nil
	}
	data := filepath.Join(pod, n.id)
	if err := unix.Mkdir(data, 0o777); err != nil {
		return fmt.Errorf("mkdir %s: %w", data, err)
	}
	return nil
}

const (
	// ordinaryLifespan is that of volumes that are not to fall due, and the
	// daemon's default.
	ordinaryLifespan = 12 * time.Hour
	// recently is over how long before the start those were unpublished.
	recently = time.Hour
)

// retain prepares so many retained volumes for both servers. Neither may run.
func (s *environment) retain(katbox, floor *server, count int) error {
	if count == 0 {
		return nil
	}
	list := manyNamed("retained", count)
	if err := fill(floor.layout.Work, list, true); err != nil {
		return err
	}
	if err := fill(katbox.layout.Work, list, false); err != nil {
		return err
	}
	now, step := time.Now(), recently/time.Duration(count)
	err := writeRecords(katbox.layout.Work, list, func(i int) time.Time { return now.Add(-time.Duration(i) * step) }, ordinaryLifespan)
	if err != nil {
		return err
	}
	return s.sync()
}

// pass prepares records from which so many retained volumes have gone. It may not run.
// What goes with a volume is its directory and its record, so that records alone have
// to be made, and forgotten again.
func (s *environment) pass(katbox *server, count int) error {
	if count == 0 {
		return nil
	}
	began := time.Now()
	list := manyNamed("gone", count)
	if err := writeRecords(katbox.layout.Work, list, func(int) time.Time { return began }, ordinaryLifespan); err != nil {
		return err
	}
	if err := forgetRecords(katbox.layout.Work, list); err != nil {
		return err
	}
	s.say("prepared records from which %d volumes have gone in %s", count, time.Since(began).Round(100*time.Millisecond))
	return s.sync()
}

// sync writes what is still to be written, which would else be written beside what
// is measured: to the file system, and then what that is on.
func (s *environment) sync() error {
	for _, path := range []string{s.layout.Work, s.layout.Dir} {
		dir, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		err = unix.Syncfs(int(dir.Fd()))
		dir.Close()
		if err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
	}
	return nil
}
