// Package synced writes files that are known to be on the disk, and finds out whether they are still as they were.
package synced

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// mostBytes bounds a marker: several blocks, and several extents on a bad day.
const mostBytes = 20_000

// Name is that of the k-th marker.
func Name(k int) string { return fmt.Sprintf("marker-%d", k) }

// content is that of the k-th marker of an owner, like that of no other.
func content(owner string, k int) []byte {
	random := rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%s %d", owner, k)))
	content := make([]byte, 1+random.Uint64()%mostBytes)
	_, _ = random.Read(content) // it never fails
	return content
}

// Write writes the k-th marker of an owner to a file below dir. When it returns, file and name are on the disk.
func Write(dir, name, owner string, k int) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write a marker: %w", err)
	}
	_, err = f.Write(content(owner, k))
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

// Check returns what is wrong with the file that has the k-th marker of an owner.
func Check(dir *os.Root, name, owner string, k int) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if want := content(owner, k); !bytes.Equal(got, want) {
		return fmt.Errorf("%d bytes that differ from the %d that were written", len(got), len(want))
	}
	return nil
}
