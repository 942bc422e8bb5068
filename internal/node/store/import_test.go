package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
)

// writeFixture makes TestWriteLegacyFixture write testdata/deletedVolumes.db anew. The checked-in
// file is what real nodes have; there should be no need.
var writeFixture = flag.Bool("write", false, "write the legacy fixture in testdata")

const fixture = "testdata/deletedVolumes.db"

var legacyDeleteTime = time.Date(2024, 5, 1, 12, 0, 0, 123456789, time.UTC)

func legacyVolumeJSON(dir, pod, id string) string {
	return fmt.Sprintf(`{"name":"ephemeral-%s","id":%q,"podUUID":%q,"size":1099511627776,"path":%q,"accessType":0,"ephemeral":true}`,
		id, id, pod, dir+"/"+pod+"/"+id)
}

func legacyDeletedJSON(path string) string {
	return fmt.Sprintf(`{"deleteTime":%q,"lifespan":43200000000000,"path":%q}`,
		legacyDeleteTime.Format(time.RFC3339Nano), path)
}

func legacyFixture() (volumes, deleted map[string]string) {
	volumes = map[string]string{
		"csi-published":     legacyVolumeJSON("/csi-data-dir", "pod-1", "csi-published"),
		"csi-both":          legacyVolumeJSON("/csi-data-dir", "pod-1", "csi-both"),
		"csi-broken-both":   `{"name":`,
		"csi-broken-volume": `{"name":"ephemeral-csi-broken-volume","id":"csi-br`,
		"csi-other-id":      legacyVolumeJSON("/csi-data-dir", "pod-1", "csi-published"),
	}
	deleted = map[string]string{
		"csi-retained":          legacyDeletedJSON("/csi-data-dir/pod-2/csi-retained"),
		"csi-both":              legacyDeletedJSON("/csi-data-dir/pod-1/csi-both"),
		"csi-broken-both":       legacyDeletedJSON("/csi-data-dir/pod-1/csi-broken-both"),
		"csi-broken-deleted":    `not JSON`,
		"onlyid":                legacyDeletedJSON("/csi-data-dir/onlyid"),
		"x":                     legacyDeletedJSON("/x"),
		".":                     legacyDeletedJSON("/csi-data-dir/pod-2/."),
		"..":                    legacyDeletedJSON("/csi-data-dir/pod-2/.."),
		"csi-no-time":           `{"deleteTime":"0001-01-01T00:00:00Z","lifespan":1,"path":"/csi-data-dir/pod-2/csi-no-time"}`,
		"csi-negative-lifespan": `{"deleteTime":"2024-05-01T12:00:00Z","lifespan":-1,"path":"/csi-data-dir/pod-2/csi-negative-lifespan"}`,
	}
	return volumes, deleted
}

func writeLegacy(t testing.TB, path string, volumes, deleted map[string]string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for name, entries := range map[string]map[string]string{"volumes": volumes, "deletedVolumes": deleted} {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			for k, v := range entries {
				if err := b.Put([]byte(k), []byte(v)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestWriteLegacyFixture(t *testing.T) {
	if !*writeFixture {
		t.Skip("no test: it writes the data that others read; run it with -write")
	}
	if err := os.RemoveAll(fixture); err != nil {
		t.Fatal(err)
	}
	volumes, deleted := legacyFixture()
	writeLegacy(t, fixture, volumes, deleted)
}

// TestImportFixture imports a database as the old driver wrote it, for a working directory at its
// old place and at another one.
func TestImportFixture(t *testing.T) {
	for _, workdir := range []string{"/csi-data-dir", "/var/lib/katbox"} {
		t.Run(workdir, func(t *testing.T) {
			before, err := os.ReadFile(fixture)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			s := openStoreAt(t, filepath.Join(t.TempDir(), "store.db"), moment{now: now, boot: 1, boottime: 1})
			got, err := s.ImportLegacy(fixture, workdir, now)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Done || got.Published != 2 || got.Retained != 1 {
				t.Errorf("imported %+v, want 2 published and 1 retained", got)
			}
			wantSkipped := map[string]string{
				"volumes/csi-broken-both":              "unexpected end",
				"volumes/csi-broken-volume":            "unexpected end",
				"volumes/csi-other-id":                 "does not end in its key",
				"deletedVolumes/csi-both":              "may be published",
				"deletedVolumes/csi-broken-both":       "may be published",
				"deletedVolumes/csi-broken-deleted":    "invalid character",
				"deletedVolumes/onlyid":                "path",
				"deletedVolumes/x":                     "path",
				"deletedVolumes/.":                     "path",
				"deletedVolumes/..":                    "path",
				"deletedVolumes/csi-no-time":           "deleteTime is missing",
				"deletedVolumes/csi-negative-lifespan": "negative",
			}
			for _, skipped := range got.Skipped {
				name := skipped.Bucket + "/" + skipped.Key
				want, ok := wantSkipped[name]
				if !ok || !strings.Contains(skipped.Reason, want) {
					t.Errorf("skipped %s: %s; want %q", name, skipped.Reason, want)
				}
				delete(wantSkipped, name)
			}
			if len(wantSkipped) > 0 {
				t.Errorf("not skipped: %v", wantSkipped)
			}

			records := load(t, s, now)
			if names(records) != "csi-both csi-published csi-retained" {
				t.Errorf("records %s", names(records))
			}
			for _, id := range []volume.ID{"csi-both", "csi-published"} {
				if r := records[id]; r.Phase != volume.Published || r.Pod != "pod-1" || len(r.Targets) != 0 {
					t.Errorf("%s is %+v, want it published without targets", id, r)
				}
			}
			r := records["csi-retained"]
			if r.Phase != volume.Retained || r.Pod != "pod-2" || r.Lifespan != 12*time.Hour ||
				!r.Unpublished.Equal(legacyDeleteTime) {
				t.Errorf("csi-retained is %+v, want its deletion time and lifespan kept", r)
			}
			after, err := os.ReadFile(fixture)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the old database was changed (%v)", err)
			}
		})
	}
}

func TestImportHappensOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	old := filepath.Join(dir, "deletedVolumes.db")
	now := time.Now()
	s := openStore(t, path)

	// Without an old database nothing is noted.
	if got, err := s.ImportLegacy(old, dir, now); err != nil || got.Done {
		t.Fatalf("import of nothing = %+v, %v", got, err)
	}
	if done, err := importNoted(s); done || err != nil {
		t.Fatalf("noted = %v, %v before there was anything", done, err)
	}

	// A record that the store has is newer than the old one.
	known := published("known")
	known.Phase = volume.Publishing
	commit(t, s, put(known))
	writeLegacy(t, old, map[string]string{
		"known": legacyVolumeJSON(dir, "pod-known", "known"),
		"a":     legacyVolumeJSON(dir, "pod-a", "a"),
	}, nil)
	if got, err := s.ImportLegacy(old, dir, now); err != nil || !got.Done || got.Published != 1 {
		t.Fatalf("import = %+v, %v; want one published", got, err)
	}
	if done, err := importNoted(s); !done || err != nil {
		t.Errorf("noted = %v, %v after the import", done, err)
	}
	if got := load(t, s, now); got["known"].Phase != volume.Publishing {
		t.Errorf("known is %+v, want the record of the store", got["known"])
	}

	// No import reads what the old driver writes after that, or brings back a forgotten volume,
	// even after a restart.
	commit(t, s, forget("a"))
	writeLegacy(t, old, map[string]string{"b": legacyVolumeJSON(dir, "pod-b", "b")}, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path)
	if got, err := s.ImportLegacy(old, dir, now); err != nil || got.Done {
		t.Errorf("second import = %+v, %v", got, err)
	}
	if got := load(t, s, now); names(got) != "known" {
		t.Errorf("records %q after a second import, want known", names(got))
	}
}

// TestImportIsNotRepeatedWhenTheRecordsAreLost: the old database says of each volume what was true
// at the upgrade. A pod with a recurring UID may have published one again since, and what the old
// database calls overdue is new data.
func TestImportIsNotRepeatedWhenTheRecordsAreLost(t *testing.T) {
	dir := t.TempDir()
	path, old := filepath.Join(dir, "store.db"), filepath.Join(dir, "deletedVolumes.db")
	mark := filepath.Join(dir, ".deletedVolumes.db.imported")
	now := time.Now()
	writeLegacy(t, old, nil, map[string]string{"a": legacyDeletedJSON(dir + "/pod/a")})
	before, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	start := func() Imported {
		t.Helper()
		s := openStore(t, path)
		got, err := s.ImportLegacy(old, dir, now)
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return got
	}
	lose := func() {
		t.Helper()
		if err := os.Rename(path, path+".aside"); err != nil {
			t.Fatal(err)
		}
	}
	if got := start(); !got.Done || got.Retained != 1 {
		t.Errorf("first start: %+v, want one retained", got)
	}
	lose()
	if got := start(); got.Done || !got.Before {
		t.Errorf("with the records lost: %+v, want that it was imported before", got)
	}
	if got := start(); got.Done || got.Before {
		t.Errorf("the start after that: %+v, want nothing", got)
	}
	// A version that left no mark has imported it.
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	start()
	lose()
	if got := start(); got.Done || !got.Before {
		t.Errorf("with the records lost: %+v, want that an earlier version has imported it", got)
	}
	// An administrator wants it all the same.
	lose()
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	if got := start(); !got.Done || got.Retained != 1 {
		t.Errorf("without the mark: %+v, want one retained", got)
	}
	if after, err := os.ReadFile(old); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old database was changed (%v)", err)
	}
}

// TestImportWithoutAMark: that there is no room for the mark is said, and keeps nothing from being
// imported.
func TestImportWithoutAMark(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, filepath.Join(dir, "store.db"))
	old := filepath.Join(dir, "deletedVolumes.db")
	writeLegacy(t, old, map[string]string{"a": legacyVolumeJSON(dir, "pod", "a")}, nil)
	if err := os.Mkdir(filepath.Join(dir, ".deletedVolumes.db.imported"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := s.ImportLegacy(old, dir, time.Now())
	if err != nil || !got.Done || got.Published != 1 || got.Unmarked == nil {
		t.Errorf("imported %+v, %v; want one published, and why there is no mark", got, err)
	}
}

func TestImportOfUnreadableDatabase(t *testing.T) {
	shorten(t, 50*time.Millisecond)
	whole, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	locked := writeFile(t, whole)
	db, err := bbolt.Open(locked, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tests := []struct {
		name string
		path string
		want error
		text string
	}{
		{"empty", writeFile(t, nil), ErrDamaged, "(it is empty); move it aside and start again"},
		{"cut off", writeFile(t, whole[:len(whole)/4]), ErrDamaged, "adopted as retained"},
		{"not a database", writeFile(t, bytes.Repeat([]byte("x"), 100_000)), ErrDamaged, "meta page"},
		{"old driver runs", locked, ErrLocked, "the old driver still runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
			got, err := s.ImportLegacy(tt.path, "/csi-data-dir", time.Now())
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) ||
				!strings.Contains(err.Error(), tt.path) {
				t.Errorf("import = %+v, %v; want %v with %q", got, err, tt.want, tt.text)
			}
			if done, err := importNoted(s); done || err != nil {
				t.Errorf("noted = %v, %v after a failed import", done, err)
			}
			if got := load(t, s, time.Now()); len(got) != 0 {
				t.Errorf("a failed import left %v", got)
			}
			commit(t, s, put(published("a")))
		})
	}
}

// TestImportLeavesAPodsDirectory: the UID of a pod is the name of the old database.
func TestImportLeavesAPodsDirectory(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	got, err := s.ImportLegacy(t.TempDir(), "/csi-data-dir", time.Now())
	if err != nil || got.Done {
		t.Errorf("imported %+v, %v", got, err)
	}
	if done, err := importNoted(s); done || err != nil {
		t.Errorf("noted = %v, %v", done, err)
	}
}

// TestImportOfDamagedDatabase damages the old database in many ways.
func TestImportOfDamagedDatabase(t *testing.T) {
	whole, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	path := writeFile(t, whole)
	for at := range 16 << 10 {
		// Each number of a header, and every so often a byte of the rest.
		if at%4096 > 128 && at%61 != 0 {
			continue
		}
		bad := bytes.Clone(whole)
		bad[at] ^= 0x41
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		old, err := openDatabase(path, os.O_RDONLY, oldDriver)
		if err == nil {
			err = old.view(func(tx *bbolt.Tx) error {
				records, _ := readLegacy(tx, "/csi-data-dir")
				for _, r := range records {
					if _, err := encodeValue(r, moment{}); err != nil {
						t.Errorf("byte %d: cannot store %+v: %v", at, r, err)
					}
				}
				return nil
			})
			err = errors.Join(err, old.close())
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v, want ErrDamaged", at, err)
		}
	}
	if done, err := importNoted(s); done || err != nil {
		t.Errorf("noted = %v, %v", done, err)
	}
}
