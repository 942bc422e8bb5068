//go:build !linux

package verbs

import "os"

// settle waits until the disk has a directory, as far as this system can wait for more than one file.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = f.Sync() // Windows opens a directory to read only.
	return nil
}
