package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TrashName is where the driver puts data that it is about to erase, in its working directory.
const TrashName = ".trash"

// lostAndFound is made by mkfs.ext4.
const lostAndFound = "lost+found"

// Remains lists what there should not be in a working directory once all
// volumes are over: directories of pods, and trash. The driver's records and its
// other hidden directories may stay, and so may the excused data directories.
func Remains(work string, excused map[string]bool) ([]string, error) {
	entries, err := os.ReadDir(work)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	pods := make(map[string]bool)
	for data := range excused {
		pods[filepath.Dir(data)] = true
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() || strings.HasPrefix(name, ".") && name != TrashName || name == lostAndFound {
			continue
		}
		dir := filepath.Join(work, name)
		inside, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // erased meanwhile
		case err != nil:
			return nil, fmt.Errorf("working directory: %w", err)
		case name != TrashName && len(inside) == 0 && !pods[dir]:
			found = append(found, name+"/")
		}
		for _, e := range inside {
			if !excused[filepath.Join(dir, e.Name())] {
				found = append(found, filepath.Join(name, e.Name()))
			}
		}
	}
	return found, nil
}
