package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/katbox/katbox/soak/internal/host"
)

// orSlow explains what went wrong with the files of a pod whose lifespan is over:
// that is no fault of the daemon.
func (s *story) orSlow(p *pod, err error) error {
	if time.Since(p.retained) >= s.lifespan {
		return errSlow
	}
	return err
}

// absent reports whether a directory is gone.
func absent(dir string) (bool, error) {
	_, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// same compares two lists, one of them after a restart. A start computes anew when
// a volume was retained, from clocks that it reads one after the other.
func same(before, after []listed) error {
	if len(before) != len(after) {
		return fmt.Errorf("%d volumes were listed before the kill, and %d after it", len(before), len(after))
	}
	for i, b := range before {
		a := after[i]
		if a.ID != b.ID || a.Namespace != b.Namespace || a.Pod != b.Pod || a.RetainedAt.Sub(b.RetainedAt).Abs() > time.Second {
			return fmt.Errorf("the list had %s/%s, retained at %s, and after the kill %s/%s, retained at %s",
				b.Namespace, b.Pod, b.RetainedAt, a.Namespace, a.Pod, a.RetainedAt)
		}
	}
	return nil
}

// serves makes sure that the pod that runs all the time has its volume, with what
// it has written, and goes on writing.
func (s *story) serves(ctx context.Context) error {
	mounted, err := host.MountedAt(s.web.target())
	if err != nil {
		return err
	}
	if !mounted {
		return fmt.Errorf("the volume of pod %s is not mounted any more", s.web)
	}
	cache, err := os.Stat(filepath.Join(s.web.target(), "cache"))
	if err != nil {
		return fmt.Errorf("pod %s has lost a file: %w", s.web, err)
	}
	if cache.Size() != s.web.bytes {
		return fmt.Errorf("a file of pod %s has %d bytes instead of %d", s.web, cache.Size(), s.web.bytes)
	}
	before, err := s.requests()
	if err != nil {
		return fmt.Errorf("pod %s has lost a file: %w", s.web, err)
	}
	return poll(ctx, "pod "+s.web.String()+" writes no more", func() (bool, error) {
		now, err := s.requests()
		return now > before, err
	})
}

// requests is how long the log of the pod is that runs all the time, in bytes.
func (s *story) requests() (int64, error) {
	log, err := os.Stat(filepath.Join(s.web.target(), "access.log"))
	if err != nil {
		return 0, err
	}
	return log.Size(), nil
}

// requested reports whether it writes.
func (s *story) requested() (bool, error) {
	bytes, err := s.requests()
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return bytes > 0, err
}
