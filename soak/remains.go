package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// trashName is where the daemon puts data that it is about to erase.
const trashName = ".trash"

// remains lists what there should not be in a working directory once all
// volumes have expired: directories of pods, and trash. The daemon's records
// and its other hidden directories may stay.
func remains(work string) ([]string, error) {
	entries, err := os.ReadDir(work)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || strings.HasPrefix(name, ".") && name != trashName {
			continue
		}
		inside, err := os.ReadDir(filepath.Join(work, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // erased meanwhile
		case err != nil:
			return nil, fmt.Errorf("working directory: %w", err)
		}
		if name != trashName && len(inside) == 0 {
			found = append(found, name+"/")
		}
		for _, e := range inside {
			found = append(found, filepath.Join(name, e.Name()))
		}
	}
	return found, nil
}

// awaitEmpty waits until the working directory has no remains, and reports them
// if there are some at the given time.
func awaitEmpty(ctx context.Context, work string, until time.Time, f *findings) error {
	for {
		before := time.Now()
		found, err := remains(work)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		if before.After(until) {
			f.add(leftData, nil, fmt.Sprintf("all volumes have expired, but the working directory still has %s", few(found)))
			return nil
		}
		if err := sleep(ctx, lookInterval); err != nil {
			return err
		}
	}
}

// checkMounts reports mounts below the directories. A directory itself may be
// one: the daemon may want its working directory to be a mount.
func checkMounts(when string, f *findings, dirs ...string) error {
	for _, dir := range dirs {
		mounts, err := leakedMounts(dir)
		if err != nil {
			return err
		}
		for _, mount := range mounts {
			f.add(leakedMount, nil, fmt.Sprintf("%s: %s is still mounted", when, mount))
		}
	}
	return nil
}

// few is the number of the things and the first of them.
func few(things []string) string {
	const shown = 5
	list := strings.Join(things[:min(shown, len(things))], ", ")
	if len(things) > shown {
		list += ", ..."
	}
	return fmt.Sprintf("%d entries: %s", len(things), list)
}
