package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// mostBytes bounds a marker: several blocks, and several extents on a bad day.
const mostBytes = 20_000

func markerName(k int) string { return fmt.Sprintf("marker-%d", k) }

// marker is the content of the k-th marker of a volume, like that of no other.
func marker(volume string, k int) []byte {
	random := rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s %d", volume, k)))
	content := make([]byte, 1+random.Uint64()%mostBytes)
	_, _ = random.Read(content) // it never fails
	return content
}

// writeMarker writes the k-th marker below dir. When it returns, file and name are
// on the disk.
func writeMarker(dir, volume string, k int) error {
	f, err := os.OpenFile(filepath.Join(dir, markerName(k)), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write a marker: %w", err)
	}
	_, err = f.Write(marker(volume, k))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write a marker: %w", err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync a directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync a directory: %w", err)
	}
	return nil
}

// look says what there is of n markers in a data directory: whole, partial with
// what is wrong, or gone. The directory may be moved away and erased meanwhile.
func look(dir, volume string, n int) (verb, string) {
	what, text := lookOnce(dir, volume, n)
	if what != partial {
		return what, text
	}
	// It may have gone in between. What is still there now is not on its way.
	return lookOnce(dir, volume, n)
}

func lookOnce(dir, volume string, n int) (verb, string) {
	d, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return gone, ""
	}
	if err != nil {
		return partial, err.Error()
	}
	defer d.Close()
	for k := 1; k <= n; k++ {
		if err := lookAt(d, volume, k); err != nil {
			return partial, fmt.Sprintf("marker %d of %d: %v", k, n, err)
		}
	}
	return whole, ""
}

func lookAt(d *os.Root, volume string, k int) error {
	f, err := d.Open(markerName(k))
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if want := marker(volume, k); !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes that differ from the %d that were written", len(got), len(want))
	}
	return nil
}

// count says how many of the markers are there: all of them, or none. The error
// says that it is neither.
func count(dir, volume string, n int) (int, error) {
	what, text := look(dir, volume, n)
	switch what {
	case whole:
		return n, nil
	case gone:
		return 0, fmt.Errorf("%s does not exist", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	if len(entries) > 0 {
		return 0, errors.New(text)
	}
	return 0, nil
}
