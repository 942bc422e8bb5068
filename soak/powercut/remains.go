package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// trashName is where the daemon puts what it is about to erase.
const trashName = ".trash"

// remains lists what there should not be in a working directory without volumes:
// directories of pods, and trash. The records may stay, as may other hidden files.
func remains(work string) ([]string, error) {
	entries, err := os.ReadDir(work)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	var found []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			found = append(found, entry.Name())
		}
	}
	trash, err := os.ReadDir(filepath.Join(work, trashName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("trash: %w", err)
	}
	for _, entry := range trash {
		found = append(found, filepath.Join(trashName, entry.Name()))
	}
	return found, nil
}
