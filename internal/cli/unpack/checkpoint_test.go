package unpack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archive/tar"
)

// saved is the last checkpoint of a call, as a later one reads it.
type saved struct {
	Checkpoint
	count int
}

func (s *saved) save(c Checkpoint) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	s.count++
	s.Checkpoint = Checkpoint{}
	return json.Unmarshal(b, &s.Checkpoint)
}

// wantTree checks names, contents, modes and times of what cut archives leave.
func wantTree(t *testing.T, on system, what, dest string) {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(dest, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, dest))
		return err
	}))
	want := " /closed /closed/fourth /dir /dir/below /dir/below/third /dir/second /first /last"
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("%s: %s, want %s", what, got, want)
	}
	for name, mode := range map[string]fs.FileMode{"closed": 0o500, "dir": 0o750, "dir/below": 0o755} {
		info, err := os.Stat(filepath.Join(dest, name))
		if err != nil || !info.ModTime().Equal(before) || !on.noModes && info.Mode().Perm()|0o022 != mode|0o022 {
			t.Fatalf("%s: %s: %v, %v, %v", what, name, info.Mode(), info.ModTime(), err)
		}
	}
	must(t, os.Chmod(filepath.Join(dest, "closed"), 0o700))
}

var before = time.Unix(1_600_000_000, 0)

// cutEntries have directories that cannot be written once they are complete.
func cutEntries() []tar.Header {
	dir, below, closed := directory("dir"), directory("dir/below"), directory("closed")
	dir.Mode, closed.Mode = 0o750, 0o500
	dir.ModTime, below.ModTime, closed.ModTime = before, before, before
	return []tar.Header{file("first"), dir, file("dir/second"), below, file("dir/below/third"), closed, file("closed/fourth"), file("last")}
}

// TestGoesOn: wherever an archive is cut, another call goes on, and both leave what one would.
func TestGoesOn(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, cutEntries()...)
		for cut := 0; cut < len(whole); cut += 97 {
			dest, s := t.TempDir(), saved{}
			_, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:cut]), Options{Dir: dest, Save: s.save})
			if err == nil || s.Next > int64(cut+511) {
				t.Fatalf("cut at %d of %d: %v, next is %d", cut, len(whole), err, s.Next)
			}
			for _, name := range []string{"closed", "dir"} {
				if info, err := os.Stat(filepath.Join(dest, name)); err == nil && info.Mode().Perm()&0o007 != 0 {
					t.Fatalf("cut at %d: %s has mode %v", cut, name, info.Mode())
				}
			}
			from := s.Checkpoint
			if _, err := unpackOn(t.Context(), on, bytes.NewReader(whole[from.Next:]), Options{Dir: dest, Save: s.save, From: from}); err != nil {
				t.Fatalf("cut at %d, from %d on: %v", cut, from.Next, err)
			}
			wantTree(t, on, "cut", dest)
		}
	})
}

// TestGoesOnAfterAKill: a call that ends without another word is gone on from, from any checkpoint before on.
func TestGoesOnAfterAKill(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, cutEntries()...)
		for cut := 0; cut < len(whole)-1024; cut += 512 {
			for earlier := 0; earlier <= cut; earlier += 512 {
				dest, s := t.TempDir(), saved{}
				_, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:earlier]), Options{Dir: dest, Save: s.save})
				if err == nil {
					t.Fatal("no error")
				}
				from := s.Checkpoint
				// What comes after the checkpoint is not known to it.
				lost := func(Checkpoint) error { return nil }
				rest := whole[from.Next:max(int64(cut), from.Next)]
				_, err = unpackOn(t.Context(), on, bytes.NewReader(rest), Options{Dir: dest, Save: lost, From: from})
				if err == nil {
					t.Fatal("no error")
				}
				for _, left := range []string{"", "dir", "closed"} {
					if info, err := os.Stat(filepath.Join(dest, left)); err == nil && info.Mode().Perm()&0o200 != 0 {
						write(t, filepath.Join(dest, left, from.Partial), "half")
						break
					}
				}
				if _, err := unpackOn(t.Context(), on, bytes.NewReader(whole[from.Next:]), Options{Dir: dest, Save: s.save, From: from}); err != nil {
					t.Fatalf("killed at %d, from %d on: %v", cut, from.Next, err)
				}
				wantTree(t, on, "killed", dest)
			}
		}
	})
}

// TestCheckpoints: a call that waits for the archive has saved how far it came, and what it left out.
func TestCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dest, s := t.TempDir(), saved{}
		r, w := io.Pipe()
		begin := []tar.Header{file("x/a:b"), file("x/\xff"), file("x/first")}
		whole := archive(t, append(begin, file("x/second"))...)
		done := make(chan error, 1)
		go func() {
			_, err := unpackOn(t.Context(), asWindows, r, Options{Dir: dest, Save: s.save})
			done <- err
		}()
		at := len(archive(t, begin...)) - 1024
		_, err := w.Write(whole[:at])
		must(t, err)
		time.Sleep(2 * saveEvery)
		synctest.Wait()
		if s.Next != int64(at) || s.Count != 2 || len(s.Open) != 1 {
			t.Errorf("%+v", s)
		}
		count := s.count
		time.Sleep(time.Hour)
		if s.count != count {
			t.Errorf("%d checkpoints of nothing new", s.count-count)
		}
		from := s.Checkpoint
		must(t, w.CloseWithError(errors.New("cut")))
		if err := <-done; err == nil {
			t.Error("no error")
		}
		_, err = unpackOn(t.Context(), asWindows, bytes.NewReader(whole[from.Next:]), Options{Dir: dest, Save: s.save, From: from})
		wantReasons(t, err, "x/a:b", "x/\xff")
		names, err := os.ReadDir(filepath.Join(dest, "x"))
		if err != nil || len(names) != 2 {
			t.Errorf("%v, %v", names, err)
		}
	})
}

// TestAHostileCheckpoint names nothing but a file of an earlier call, so none outside of the directory is removed, and none
// that the archive brought.
func TestAHostileCheckpoint(t *testing.T) {
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, file("first"), directory("dir"), file("dir/last"))
		for _, partial := range []string{
			"../victim", "dir/../../victim", "/victim", "..", "victim", "first", ".katbox-a/b.partial", ".katbox-.partial",
		} {
			above := t.TempDir()
			dest, s := filepath.Join(above, "dest"), saved{}
			must(t, os.Mkdir(dest, 0o755))
			write(t, filepath.Join(above, "victim"), "victim")
			write(t, filepath.Join(dest, "victim"), "victim")
			_, err := unpackOn(t.Context(), on, bytes.NewReader(whole), Options{Dir: dest, Save: s.save, From: Checkpoint{Partial: partial}})
			if err == nil || !strings.Contains(err.Error(), "is no name of a file that is not complete") {
				t.Errorf("%q: %v", partial, err)
			}
			for _, name := range []string{"victim", "dest/victim"} {
				if b, err := os.ReadFile(filepath.Join(above, name)); err != nil || string(b) != "victim" {
					t.Errorf("%q: %s: %q, %v", partial, name, b, err)
				}
			}
		}
	})
}
