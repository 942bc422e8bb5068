package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/launch"
	"github.com/katbox/katbox/soak/internal/workload"
)

// containerVariable has, in the environment of a container's process, what it does. It is a process of its
// own because one that has files of an array open cannot start others while the array is away.
const containerVariable = "KATBOX_SOAK_CONTAINER"

// deed is what a container does in a volume.
type deed struct {
	// Write: it writes the content, and makes it durable; else it compares.
	Write   bool
	Path    string
	Block   bool
	Content workload.Content
	// Outside is a directory that no volume has.
	Outside string
	// Bytes is how large the volume has to be; 0 does not ask.
	Bytes int64
}

// becomeContainer does what a container has to, and ends the process, if this is one.
func becomeContainer() {
	text := os.Getenv(containerVariable)
	if text == "" {
		return
	}
	var d deed
	err := json.Unmarshal([]byte(text), &d)
	if err == nil {
		err = d.do()
	}
	if err != nil {
		fmt.Fprint(os.Stderr, err)
		os.Exit(launch.Failed)
	}
	os.Exit(0)
}

// run runs it in a process. The error says what is different, or could not be written.
func (d deed) run(ctx context.Context) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, self)
	process.Env = append(os.Environ(), containerVariable+"="+string(text))
	ended := make(chan error, 1)
	go func() {
		out, err := process.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		ended <- errors.Join(err, ctx.Err())
	}()
	// What waits for an array cannot be killed.
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-patient.Done():
		return fmt.Errorf("%s stands still since %s: %w", d.Path, patience, patient.Err())
	}
}

func (d deed) do() error {
	switch {
	case d.Block && d.Write:
		return d.writeDevice()
	case d.Block:
		return d.compareDevice()
	}
	dir := filepath.Join(d.Path, "content")
	spec := content.Spec{ID: d.Content.Marker, Content: d.Content, Outside: d.Outside}
	if !d.Write {
		return errors.Join(content.Verify(dir, spec, content.Filled{Marker: true, Entries: mostEntries}), d.large())
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if _, err := content.Fill(dir, spec); err != nil {
		return err
	}
	root, err := os.Open(d.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	return unix.Syncfs(int(root.Fd()))
}

// mostEntries is more than any volume has: all are compared.
const mostEntries = 1 << 20

// large reports whether the file system is as large as it has to be. Some of it is not for files.
func (d deed) large() error {
	var at unix.Statfs_t
	if err := unix.Statfs(d.Path, &at); err != nil || d.Bytes == 0 {
		return err
	}
	if has := int64(at.Blocks) * at.Bsize; has < d.Bytes/10*8 {
		return fmt.Errorf("the file system has %d bytes, after it was expanded to %d", has, d.Bytes)
	}
	return nil
}

// bytes are those of a device.
func (d deed) bytes() []byte {
	all := make([]byte, 2<<20)
	random := rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%032x", d.Content.Seed))))
	_, _ = random.Read(all)
	return all
}

func (d deed) writeDevice() error {
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(d.bytes())
	return errors.Join(err, f.Sync(), f.Close())
}

func (d deed) compareDevice() error {
	f, err := os.Open(d.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	want := d.bytes()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(f, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("the device's bytes are not what was written")
	}
	if end, err := f.Seek(0, io.SeekEnd); err != nil || end < d.Bytes {
		return fmt.Errorf("the device has %d bytes, after it was expanded to %d: %w", end, d.Bytes, err)
	}
	return nil
}
