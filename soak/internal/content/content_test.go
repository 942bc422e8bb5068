package content

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/soak/internal/workload"
)

// everything is a volume with all there can be in one. Only root can read it
// all and remove it again.
func everything(t *testing.T) Spec {
	t.Helper()
	s := anybodys(t)
	s.Content.Modes = true
	if os.Geteuid() != 0 {
		t.Skip("this machine lacks root: it needs files without permissions; make check runs it")
	}
	return s
}

// anybodys is what every user can handle.
func anybodys(t *testing.T) Spec {
	return Spec{
		ID: "csi-1", Outside: t.TempDir(),
		Content: workload.Content{
			Marker: "m1", Seed: 7, Files: 12, Bytes: 20_000,
			Deep: true, Names: true, Sparse: true, Links: true, Special: true,
		},
	}
}

// filled returns a new directory with the content of s.
func filled(t *testing.T, s Spec) (string, Filled) {
	t.Helper()
	dir := t.TempDir()
	done, err := Fill(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	return dir, done
}

func TestWhatWasFilledIsVerified(t *testing.T) {
	for name, s := range map[string]Spec{"everything": anybodys(t), "nothing but the marker": {ID: "csi-2"}} {
		t.Run(name, func(t *testing.T) {
			dir, done := filled(t, s)
			entries := 0
			for range s.entries() {
				entries++
			}
			if !done.Marker || done.Entries != entries {
				t.Errorf("filled %+v, want the marker and %d entries", done, entries)
			}
			for range 2 {
				if err := Verify(dir, s, done); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("modes", func(t *testing.T) {
		s := everything(t)
		dir, done := filled(t, s)
		if err := Verify(dir, s, done); err != nil {
			t.Error(err)
		}
	})
}

// TestTheUmaskDoesNotMatter: the daemon that a run starts wants one, and a
// person who starts the run has one.
func TestTheUmaskDoesNotMatter(t *testing.T) {
	s := everything(t)
	before := unix.Umask(0o027)
	dir, done := filled(t, s)
	unix.Umask(before)
	if err := Verify(dir, s, done); err != nil {
		t.Error(err)
	}
}

func TestTheSeedDecides(t *testing.T) {
	s := anybodys(t)
	dir, done := filled(t, s)
	again, sameDone := filled(t, s)
	if done != sameDone {
		t.Errorf("filled %+v, then %+v", done, sameDone)
	}
	if a, b := listing(t, dir), listing(t, again); !slices.Equal(a, b) {
		t.Errorf("the same seed made\n%s\nand\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	other := s
	other.Content.Seed++
	if err := Verify(dir, other, done); err == nil {
		t.Error("another seed made the same content")
	}
	if err := Verify(dir, s, done); err != nil {
		t.Error(err)
	}
}

// listing are the names, types and sizes at the top.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		line := info.Mode().String() + " " + e.Name()
		if info.Mode().IsRegular() {
			data, err := readStart(filepath.Join(dir, e.Name()), 100)
			if err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprintf(" %d %q", info.Size(), data)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestContentIsWhatItIsSaidToBe looks with other eyes than Verify.
func TestContentIsWhatItIsSaidToBe(t *testing.T) {
	s := anybodys(t)
	dir, done := filled(t, s)

	files, err := filepath.Glob(filepath.Join(dir, "file-*"))
	if err != nil || len(files) != s.Content.Files {
		t.Errorf("%d files, error %v, want %d", len(files), err, s.Content.Files)
	}
	var sum, largest int64
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sum, largest = sum+info.Size(), max(largest, info.Size())
	}
	if largest > s.Content.Bytes || largest == 0 || sum > done.Bytes {
		t.Errorf("the largest has %d bytes of at most %d, all have %d and are said to have at least %d", largest, s.Content.Bytes,
			sum, done.Bytes)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, "sparse"), &st); err != nil || st.Size != 1<<30 || st.Blocks*512 > 1<<22 {
		t.Errorf("sparse file: %d bytes, %d blocks, error %v", st.Size, st.Blocks, err)
	}
	for _, name := range oddNames {
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(dir, "link-1")); err != nil || to != s.Outside {
		t.Errorf("link-1 leads to %q, error %v, want %q", to, err, s.Outside)
	}
	if _, err := os.Stat(filepath.Join(dir, "link-10")); err == nil || !strings.Contains(err.Error(), unix.ELOOP.Error()) {
		t.Errorf("link-10: error %v, want a loop", err)
	}
	for name, mode := range map[string]os.FileMode{"fifo": os.ModeNamedPipe, "socket": os.ModeSocket} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode().Type() != mode {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
	}
	length, depth := 0, 0
	for e := range s.entries() {
		if e.name == "leaf" {
			length, depth = max(length, len(strings.Join(e.in, "/"))), max(depth, len(e.in))
		}
	}
	if length <= unix.PathMax || depth <= 300 {
		t.Errorf("the deepest file is in %d levels and %d bytes of path", depth, length)
	}
}

// TestLimitsOfAVolume: nothing that a workload says makes one volume a run of
// its own.
func TestLimitsOfAVolume(t *testing.T) {
	s := Spec{Content: workload.Content{Files: 1 << 30, Bytes: 1 << 40}}
	files, bytes := 0, int64(0)
	for e := range s.entries() {
		files, bytes = files+1, bytes+e.size
	}
	if files != mostFiles || bytes != mostBytes {
		t.Errorf("%d files of %d bytes together, want %d of %d", files, bytes, mostFiles, mostBytes)
	}
}

// TestFillRefuses: content is written once, and never through a symlink.
func TestFillRefuses(t *testing.T) {
	s := anybodys(t)
	dir, _ := filled(t, s)
	if done, err := Fill(dir, s); err == nil || done != (Filled{}) {
		t.Errorf("filled twice: %+v, error %v", done, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	empty := t.TempDir()
	if err := os.Symlink(empty, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Fill(link, s); err == nil || len(listing(t, empty)) > 0 {
		t.Errorf("filled through a symlink: error %v, made %q", err, listing(t, empty))
	}
	s.Outside = "relative"
	if _, err := Fill(empty, s); err == nil || !strings.Contains(err.Error(), "Spec.Outside") {
		t.Errorf("a relative Outside: error %v", err)
	}
}
