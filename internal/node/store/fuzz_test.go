package store

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
)

// FuzzDecodeValue looks for bytes that are read as a record that should not be, or that is another
// one once it was written again.
func FuzzDecodeValue(f *testing.F) {
	m := moment{now: time.Now(), boot: 7, boottime: int64(time.Hour)}
	earlier := moment{now: m.now, boot: 6, boottime: m.boottime}
	rich := example(1).WithTarget(volume.Target{Path: "/pods/a", Flags: []string{"nosuid"}, ReadOnly: true})
	for _, r := range []volume.Record{published("a"), example(0), rich} {
		for _, m := range []moment{m, earlier, {now: m.now}} {
			value, err := encodeValue(r, m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(r.ID), value[0], value[valueHeader:])
		}
	}
	f.Add("..", byte(1), []byte{0xa0})
	f.Add("a", byte(2), []byte{0xbf, 0xff})
	f.Add("a", byte(1), []byte{0xa2, 4, 2, 4, 5})
	f.Fuzz(func(t *testing.T, key string, version byte, body []byte) {
		// The body as a whole value first, which has no right checksum.
		if r, err := decodeValue([]byte(key), body, m); err == nil {
			t.Logf("a lucky checksum: %+v", r)
		}
		r, err := decodeValue([]byte(key), seal(key, version, body), m)
		if err != nil {
			return
		}
		checkUsable(t, r, m.now)
		value, err := encodeValue(r, m)
		if err != nil {
			t.Fatalf("cannot write %+v, which was read: %v", r, err)
		}
		again, err := decodeValue([]byte(key), value, m)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("read %+v\nthen %+v, %v", r, again, err)
		}
	})
}

func FuzzDecodeLegacyVolume(f *testing.F) {
	volumes, _ := legacyFixture()
	for key, value := range volumes {
		f.Add(key, value, "/csi-data-dir")
	}
	f.Add("id", legacyVolumeJSON("/a/b", "pod", "id"), "/")
	f.Fuzz(func(t *testing.T, key, value, workdir string) {
		r, err := decodeLegacyVolume([]byte(key), []byte(value), workdir)
		if err != nil {
			return
		}
		checkLegacyRecord(t, r, key)
		if r.Phase != volume.Published {
			t.Errorf("phase %v, want Published", r.Phase)
		}
	})
}

func FuzzDecodeLegacyDeleted(f *testing.F) {
	_, deleted := legacyFixture()
	for key, value := range deleted {
		f.Add(key, value, "/csi-data-dir")
	}
	f.Add("id", legacyDeletedJSON("/a/b/pod/id"), "/")
	f.Fuzz(func(t *testing.T, key, value, workdir string) {
		r, err := decodeLegacyDeleted([]byte(key), []byte(value), workdir)
		if err != nil {
			return
		}
		checkLegacyRecord(t, r, key)
		if r.Phase != volume.Retained {
			t.Errorf("phase %v, want Retained", r.Phase)
		}
	})
}

// FuzzCheckFile looks for files that the check accepts and that then hang or crash the process.
func FuzzCheckFile(f *testing.F) {
	whole, err := os.ReadFile(fixture)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), []byte{}, uint16(0), []byte{})
	f.Add(uint16(8192), []byte{2, 0, 0, 0}, uint16(12288+16), []byte{0xff})
	f.Fuzz(func(t *testing.T, at1 uint16, patch1 []byte, at2 uint16, patch2 []byte) {
		data := append([]byte(nil), whole...)
		copy(data[min(int(at1), len(data)):], patch1)
		copy(data[min(int(at2), len(data)):], patch2)
		path := filepath.Join(t.TempDir(), "old.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		old, err := openDatabase(path, os.O_RDWR, oldDriver)
		if err == nil {
			err = old.update(func(tx *bbolt.Tx) error {
				readLegacy(tx, "/csi-data-dir")
				b, err := tx.CreateBucketIfNotExists([]byte("volumes"))
				if err != nil {
					return err
				}
				return b.Put([]byte("fuzz"), make([]byte, 5000))
			})
			if err != nil && !errors.Is(err, ErrDamaged) {
				err = nil // bbolt's own refusal, such as a bucket that is a value
			}
			err = errors.Join(err, old.close())
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%v, want ErrDamaged", err)
		}
	})
}

func checkLegacyRecord(t testing.TB, r volume.Record, key string) {
	t.Helper()
	checkUsable(t, r, time.Time{})
	if string(r.ID) != key || len(r.Targets) != 0 {
		t.Errorf("key %q gives %+v", key, r)
	}
	if _, err := encodeValue(r, moment{}); err != nil {
		t.Errorf("cannot write %+v: %v", r, err)
	}
}

// checkUsable fails for a record that could do harm.
func checkUsable(t testing.TB, r volume.Record, now time.Time) {
	t.Helper()
	dir := filepath.Join("/data", string(r.Pod), string(r.ID))
	if strings.Count(dir, "/") != 3 || !strings.HasPrefix(dir, "/data/") {
		t.Errorf("data directory %q of %+v", dir, r)
	}
	if !r.Phase.Valid() || r.Lifespan < 0 || r.Phase == volume.Retained && r.Unpublished.IsZero() {
		t.Errorf("unusable record %+v", r)
	}
	if !now.IsZero() && r.Unpublished.After(now) {
		t.Errorf("unpublished in the future: %+v", r)
	}
}
