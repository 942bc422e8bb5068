package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/katbox/katbox/soak/internal/synced"
	"github.com/katbox/katbox/soak/story"
)

// look says what there is of n markers in a data directory: whole, partial with
// what is wrong, empty, or gone. The directory may be moved away and erased meanwhile.
func look(dir, volume string, n int) (story.Verb, string) {
	what, text := lookOnce(dir, volume, n)
	if what != story.Partial && what != story.Empty {
		return what, text
	}
	// It may have gone in between. What is still there now is not on its way.
	return lookOnce(dir, volume, n)
}

func lookOnce(dir, volume string, n int) (story.Verb, string) {
	d, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return story.Gone, ""
	}
	if err != nil {
		return story.Partial, err.Error()
	}
	defer d.Close()
	for k := 1; k <= n; k++ {
		if err := synced.Check(d, synced.Name(k), volume, k); err != nil {
			if entries, err := fs.ReadDir(d.FS(), "."); err == nil && len(entries) == 0 {
				return story.Empty, ""
			}
			return story.Partial, fmt.Sprintf("marker %d of %d: %v", k, n, err)
		}
	}
	return story.Whole, ""
}

// count says how many of the markers are there: all of them, or none. The error
// says that it is neither.
func count(dir, volume string, n int) (int, error) {
	what, text := look(dir, volume, n)
	switch what {
	case story.Whole:
		return n, nil
	case story.Empty:
		return 0, nil
	case story.Gone:
		return 0, fmt.Errorf("%s does not exist", dir)
	}
	return 0, errors.New(text)
}
