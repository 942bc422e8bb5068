package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probeName is hidden, so that it is not taken for data.
const probeName = ".soak-probe"

// Probe is a file on the disk, to be written again and again: how long that takes
// tells how busy the disk and the machine are. The block that it writes is there
// already, so that it works on a full disk too.
type Probe struct{ file *os.File }

// NewProbe makes the file, with its block.
func (d *Disk) NewProbe() (*Probe, error) {
	file, err := os.Create(filepath.Join(d.work, probeName))
	if err != nil {
		return nil, fmt.Errorf("make a probe: %w", err)
	}
	p := &Probe{file: file}
	if err := p.Write(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Write writes a block and returns when it is on the disk.
func (p *Probe) Write() error {
	if _, err := p.file.WriteAt(make([]byte, 512), 0); err != nil {
		return fmt.Errorf("write the probe: %w", err)
	}
	if err := unix.Fdatasync(int(p.file.Fd())); err != nil {
		return fmt.Errorf("write the probe %s: %w", p.file.Name(), err)
	}
	return nil
}

// Close removes the file.
func (p *Probe) Close() error {
	return errors.Join(os.Remove(p.file.Name()), p.file.Close())
}
