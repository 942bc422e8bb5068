package staged

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/lib/kernel"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
)

func open(t *testing.T, dir string) *Staged {
	t.Helper()
	s, err := Open(dir, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// full has a value in every field.
func full(id string) Record {
	return Record{
		Volume: id, Path: "/var/lib/kubelet/plugins/kubernetes.io/csi/array.csi.katbox.io/x/globalmount", Block: true, FSType: "xfs",
		ReadOnly: true, Options: []string{"noatime", "discard"}, Called: "nas:/other", Serial: "volume-00000001", Formatting: true,
		Attachment: pools.Attachment{
			Volume: id, Node: "n1", Protocol: pools.ISCSI, ReadOnly: true, Export: "10.0.0.1:/x", Target: "iqn.2011-04.com.example:1",
			Portal: "10.0.0.1:3260", Serial: "volume-00000001", WWID: "naa.6001405e", LUN: 7, CHAPSecret: "chap-a", FSType: "xfs",
		},
	}
}

func TestRecordsComeBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er")
	s := open(t, dir)
	long := strings.Repeat("a", 253)
	for _, want := range []Record{full("pvc-1"), {Volume: "a.b_C-9"}, full(long), full(long[:252] + "b")} {
		if err := s.Save(want); err != nil {
			t.Fatal(err)
		}
		for _, reader := range []*Staged{s, open(t, dir)} {
			if got, err := reader.Load(want.Volume); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%.20s: got %+v, %v; want %+v", want.Volume, got, err, want)
			}
		}
	}
	all, err := s.All()
	if err != nil || len(all) != 4 {
		t.Fatalf("%d records, %v; want 4", len(all), err)
	}
	changed := full("pvc-1")
	changed.Formatting = false
	if err := s.Save(changed); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load("pvc-1"); err != nil || got.Formatting {
		t.Errorf("after a change: %+v, %v", got, err)
	}
	for range 2 {
		if err := s.Remove("pvc-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Load("pvc-1"); !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("after the removal: %v", err)
	}
}

// TestEachFieldIsKept fails when a field is added to a record, or to an attachment, that no file has.
func TestEachFieldIsKept(t *testing.T) {
	for _, whole := range []any{full("v"), full("v").Attachment} {
		value := reflect.ValueOf(whole)
		for i := range value.NumField() {
			if value.Field(i).IsZero() {
				t.Errorf("%T.%s is empty in the record of TestRecordsComeBack", whole, value.Type().Field(i).Name)
			}
		}
	}
}

func TestFormatOfTheFiles(t *testing.T) {
	content, err := os.ReadFile("testdata/version1.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(content)
	want := full("pvc-1")
	want.Attachment.WWID, want.Called = "", "" // they came later
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "records"))
	for _, id := range []string{"", ".", "..", "../a", "a/b", "/a", ".hidden", "a\x00b", "a\nb", "a b", "ä", "a~b",
		strings.Repeat("a", 2000)} {
		_, load := s.Load(id)
		for call, err := range map[string]error{"save": s.Save(Record{Volume: id}), "load": load, "remove": s.Remove(id)} {
			if !errors.Is(err, volume.ErrInvalid) {
				t.Errorf("%s of volume %.20q: %v", call, id, err)
			}
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v beside the records", entries, err)
	}
}

func TestDamagedFilesAreSetAside(t *testing.T) {
	damaged := map[string]string{
		"nothing":         "",
		"cut off":         `{"version": 1, "volume": "v`,
		"zeros":           strings.Repeat("\x00", 200),
		"no version":      `{"volume": "v"}`,
		"another volume":  `{"version": 1, "volume": "w"}`,
		"a hostile one":   `{"version": 1, "volume": "../v"}`,
		"something after": `{"version": 1, "volume": "v"} x`,
		"another type":    `{"version": 1, "volume": "v", "attachment": {"lun": "one"}}`,
	}
	for name, content := range damaged {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var lines []string
			s, err := Open(dir, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Save(full("x")); err != nil {
				t.Fatal(err)
			}
			// Twice: the second has to get another name than the first.
			for range 2 {
				if err := os.WriteFile(filepath.Join(dir, "v.json"), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				all, err := s.All()
				if err != nil || len(all) != 1 {
					t.Errorf("all: %+v, %v; want the one that is not damaged", all, err)
				}
			}
			if _, err := s.Load("v"); !errors.Is(err, volume.ErrNotFound) {
				t.Errorf("load: %v", err)
			}
			for _, aside := range []string{"v.json.damaged", "v.json.damaged-2"} {
				if got, err := os.ReadFile(filepath.Join(dir, aside)); err != nil || string(got) != content {
					t.Errorf("%s: %q, %v; want it as it was", aside, got, err)
				}
			}
			if len(lines) != 2 || !strings.Contains(lines[0], "v.json.damaged") {
				t.Errorf("log lines %q, want one for each", lines)
			}
		})
	}
}

func TestNotRegularFilesAreSetAside(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := unix.Mkfifo(filepath.Join(dir, "fifo.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "fifo.json.damaged")); err != nil {
		t.Error(err)
	}
}

func TestLaterVersionIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	path := filepath.Join(dir, "v.json")
	if err := os.WriteFile(path, []byte(`{"version": 2, "volume": "v", "more": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(full("x")); err != nil {
		t.Fatal(err)
	}
	if all, err := s.All(); !errors.Is(err, errLater) || len(all) != 1 {
		t.Errorf("%+v, %v; want the other record and an error", all, err)
	}
	if _, err := s.Load("v"); !errors.Is(err, errLater) || errors.Is(err, volume.ErrNotFound) {
		t.Errorf("load: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// TestCrashAtEachChange ends a save and a removal before each of their changes in turn. What is read
// afterwards is the old record or the new one, and the new one if the call said so.
func TestCrashAtEachChange(t *testing.T) {
	before, after := full("v"), full("v")
	after.Formatting = false
	for what, call := range map[string]func(*Staged) error{
		"save":   func(s *Staged) error { return s.Save(after) },
		"remove": func(s *Staged) error { return s.Remove("v") },
	} {
		done := false
		for lives := 0; !done; lives++ {
			dir := t.TempDir()
			s := open(t, dir)
			if err := s.Save(before); err != nil {
				t.Fatal(err)
			}
			var err error
			crashed := t.Run("", func(t *testing.T) {
				changes := 0
				kernel.Inject(t, func(string, string) error {
					if changes++; changes > lives {
						return unix.EIO
					}
					return nil
				})
				err = call(s)
			})
			if done = err == nil; !crashed || lives > 20 {
				t.Fatalf("%s never succeeds", what)
			}
			again := open(t, dir)
			got, loaded := again.Load("v")
			switch {
			case errors.Is(loaded, volume.ErrNotFound) && what == "remove" && lives > 0:
			case loaded == nil && reflect.DeepEqual(got, before) && !done:
			case loaded == nil && reflect.DeepEqual(got, after) && what == "save":
			default:
				t.Errorf("%s, crash after %d changes (%v): %+v, %v", what, lives, err, got, loaded)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
				t.Errorf("%s, crash after %d changes: %v, %v are left", what, lives, entries, err)
			}
			if err := errors.Join(again.Save(before), again.Remove("v")); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOrderOfTheChanges: what makes a record durable comes in the order in which it has to.
func TestOrderOfTheChanges(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var changes []string
	kernel.Inject(t, func(call, path string) error {
		relative, err := filepath.Rel(dir, path)
		changes = append(changes, call+" "+relative)
		return err
	})
	if err := errors.Join(s.Save(full("v")), s.Remove("v")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Createat v.json.new", "Pwrite v.json.new", "Fsync v.json.new", "Renameat v.json", "Fsync .", "RemoveIn v.json", "Fsync .",
	}
	if !reflect.DeepEqual(changes, want) {
		t.Errorf("got  %q\nwant %q", changes, want)
	}
}

func TestNoRoom(t *testing.T) {
	s := open(t, t.TempDir())
	kernel.Inject(t, func(call, _ string) error {
		if call == "Pwrite" {
			return unix.ENOSPC
		}
		return nil
	})
	if err := s.Save(full("v")); !errors.Is(err, volume.ErrNoSpace) {
		t.Errorf("%v", err)
	}
}

func TestVolumesAtTheSameTime(t *testing.T) {
	s := open(t, t.TempDir())
	var calls sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		calls.Go(func() {
			for range 20 {
				err := s.Save(full(id))
				if got, load := s.Load(id); err != nil || load != nil || got.Volume != id {
					t.Errorf("%s: %+v, %v, %v", id, got, err, load)
				}
				if err := s.Remove(id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
}
