package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/roottest"
)

func TestFormatOfAnEmptyDisk(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		d := newDevice(t, small)
		if found, err := quiet.Content(t.Context(), d.path); err != nil || found != "" {
			t.Fatalf("before: %q, %v", found, err)
		}
		if err := quiet.Format(t.Context(), d.path, fsType); err != nil {
			t.Fatal(err)
		}
		if found, err := quiet.Content(t.Context(), d.path); err != nil || found != fsType {
			t.Errorf("after: %q, %v", found, err)
		}
		if err := quiet.Check(t.Context(), d.path, fsType); err != nil {
			t.Error(err)
		}
		if err := quiet.Format(t.Context(), d.path, fsType); !errors.Is(err, attach.ErrNotOurs) {
			t.Errorf("a second time: %v", err)
		}
		dir := target(t)
		mustMount(t, d.path, dir, fsType, false)
		stats, err := quiet.Stats(dir)
		if err != nil || stats.Abnormal || stats.Space.Total.Bytes < small*3/4<<20 || stats.Space.Free.Bytes < stats.Space.Total.Bytes*8/10 {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

// TestFormatDestroysNothing: whatever is on a disk is still there after Format.
func TestFormatDestroysNothing(t *testing.T) {
	run := func(command ...string) func(*testing.T, device) {
		return func(t *testing.T, d device) {
			if out, err := roottest.Run(append(command, d.path)...); err != nil {
				t.Fatal(err, out)
			}
		}
	}
	const end = small << 20
	for _, tt := range []struct {
		name    string
		prepare func(*testing.T, device)
	}{
		{"a byte at the start", func(t *testing.T, d device) { d.write(t, 0, "x") }},
		{"a byte in the first 64 KiB", func(t *testing.T, d device) { d.write(t, ends-1, "x") }},
		{"a byte in the last 64 KiB", func(t *testing.T, d device) { d.write(t, end-ends, "x") }},
		{"the last byte", func(t *testing.T, d device) { d.write(t, end-1, "x") }},
		// Its superblock begins after the first 64 KiB, so only blkid sees it.
		{"btrfs", run("mkfs.btrfs", "-q")},
		{"swap", run("mkswap", "-q")},
		{"the other kind", run("mkfs.xfs", "-q")},
		{"partitions", func(t *testing.T, d device) {
			// One of type Linux, from sector 2048 on.
			d.write(t, 446, "\x00\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x08\x00\x00")
			d.write(t, 510, "\x55\xaa")
		}},
		{"in use by a process alone", func(t *testing.T, d device) {
			file, err := os.OpenFile(d.path, os.O_RDWR|unix.O_EXCL, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { file.Close() })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDevice(t, small)
			tt.prepare(t, d)
			before := sum(t, d)
			err := quiet.Format(t.Context(), d.path, ext4)
			if !errors.Is(err, attach.ErrNotOurs) && !errors.Is(err, volume.ErrBusy) {
				t.Errorf("format: %v", err)
			}

			if sum(t, d) != before {
				t.Error("the disk was written to")
			}
		})
	}
}

// sum is a checksum of what is on the device that is not zeros.
func sum(t *testing.T, d device) string {
	t.Helper()
	if _, err := roottest.Run("blockdev", "--flushbufs", d.path); err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(d.image)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	hash := sha256.New()
	page := make([]byte, 4096)
	for at := int64(0); ; at += int64(len(page)) {
		at, err = image.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return hex.EncodeToString(hash.Sum(nil))
		}
		if err == nil {
			_, err = image.ReadAt(page, at)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page, make([]byte, len(page))) {
			fmt.Fprintf(hash, "%d %s", at, page)
		}
	}
}

func TestFormatOfAMountedDisk(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		d := formatted(t, fsType, small)
		mustMount(t, d.path, target(t), fsType, false)
		for what, err := range map[string]error{
			"format": quiet.Format(t.Context(), d.path, fsType), "reformat": quiet.Reformat(t.Context(), d.path, fsType),
		} {
			if !errors.Is(err, volume.ErrBusy) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestFormatOfAnUnknownType(t *testing.T) {
	for _, fsType := range []string{"", "btrfs", "ext4 -F /dev/sda", "../mkfs.ext4"} {
		for what, err := range map[string]error{
			"format": quiet.Format(t.Context(), "/dev/null", fsType), "reformat": quiet.Reformat(t.Context(), "/dev/null", fsType),
			"mount": quiet.Mount("/dev/null", "/", fsType, nil, false),
		} {
			if !errors.Is(err, volume.ErrInvalid) {
				t.Errorf("%s of %q: %v", what, fsType, err)
			}
		}
	}
}

func TestContentOfWhatIsNoDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, "/dev/null", "/dev/no-such-disk", t.TempDir()} {
		if found, err := quiet.Content(t.Context(), path); err == nil {
			t.Errorf("%s: %q", path, found)
		}
	}
}

// TestWithoutBlkid: a disk whose two ends are zeros is not proven to be empty by that.
func TestWithoutBlkid(t *testing.T) {
	d := newDevice(t, small)
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "dev"), 0o700), os.WriteFile(filepath.Join(root, d.path), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, d.path, filepath.Join(root, d.path))
	tools := quiet
	tools.Root = root
	if found, err := tools.Content(t.Context(), d.path); err == nil {
		t.Errorf("content %q", found)
	}
	if err := tools.Format(t.Context(), d.path, ext4); err == nil {
		t.Error("it was formatted")
	}
}

// TestOtherDeviceInTheHostsRoot: the programs of the host would work on another disk.
func TestOtherDeviceInTheHostsRoot(t *testing.T) {
	d, other := newDevice(t, small), newDevice(t, small)
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "dev"), 0o700), os.WriteFile(filepath.Join(root, d.path), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	roottest.Bind(t, other.path, filepath.Join(root, d.path))
	tools := quiet
	tools.Root = root
	_, content := tools.Content(t.Context(), d.path)
	for what, err := range map[string]error{
		"content": content, "format": tools.Format(t.Context(), d.path, ext4), "check": tools.Check(t.Context(), d.path, ext4),
	} {
		if err == nil || !strings.Contains(err.Error(), "for the host") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestReformat(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		for _, tt := range []struct {
			name    string
			prepare func(t *testing.T, d device)
			again   bool // it is made anew
			refused bool
		}{
			{name: "nothing was done yet", prepare: func(*testing.T, device) {}, again: true},
			{name: "unknown data", prepare: func(t *testing.T, d device) { d.write(t, 4096, "a piece") }, again: true},
			{name: "half made", again: true, prepare: func(t *testing.T, d device) {
				if err := quiet.Format(t.Context(), d.path, fsType); err != nil {
					t.Fatal(err)
				}
				if fsType == xfs {
					d.write(t, 126, "\x01")
				}
			}},
			{name: "used since", prepare: func(t *testing.T, d device) {
				if err := quiet.Format(t.Context(), d.path, fsType); err != nil {
					t.Fatal(err)
				}
				dir := target(t)
				mustMount(t, d.path, dir, fsType, false)
				if err := os.WriteFile(filepath.Join(dir, "file"), []byte("data"), 0o600); err != nil {
					t.Fatal(err)
				}
				mustUnmount(t, dir)
			}},
			{name: "another file system", refused: true, prepare: func(t *testing.T, d device) {
				other := map[string]string{ext4: xfs, xfs: ext4}[fsType]
				if err := quiet.Format(t.Context(), d.path, other); err != nil {
					t.Fatal(err)
				}
			}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				d := newDevice(t, small)
				tt.prepare(t, d)
				var made int
				kernel.Inject(t, func(call, path string) error {
					if call == "Run" && strings.HasPrefix(filepath.Base(path), "mkfs.") {
						made++
					}
					return nil
				})
				before := sum(t, d)
				err := quiet.Reformat(t.Context(), d.path, fsType)
				if tt.refused {
					if !errors.Is(err, attach.ErrNotOurs) || made != 0 || sum(t, d) != before {
						t.Errorf("%v, mkfs ran %d times", err, made)
					}
					return
				}
				if err != nil || (made != 0) != tt.again {
					t.Fatalf("%v, mkfs ran %d times", err, made)
				}
				dir := target(t)
				mustMount(t, d.path, dir, fsType, false)
				_, err = os.Stat(filepath.Join(dir, "file"))
				if kept := err == nil; kept == tt.again {
					t.Errorf("the file: %v", err)
				}
			})
		}
	})
}

func TestFormatWhoseContextEnds(t *testing.T) {
	d := newDevice(t, small)
	ctx, cancel := context.WithCancel(t.Context())
	kernel.Inject(t, func(call, path string) error {
		if call == "Run" && strings.HasPrefix(filepath.Base(path), "mkfs.") {
			cancel()
		}
		return nil
	})
	if err := quiet.Format(ctx, d.path, ext4); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
