package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// Where the numbers of a bbolt file are; package boltfile knows all of its layout.
const (
	minPageSize    = 1 << 10
	pageHeaderSize = 16
	metaSize       = 64
	metaChecksumAt = 56
	boltMagic      = 0xED0CDAED
)

// smallPages returns the bytes of a store with small pages: more of them, and a tree, in a small
// file.
func smallPages(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: minPageSize})
	if err != nil {
		t.Fatal(err)
	}
	m := moment{now: time.Unix(1_700_000_000, 0), boot: 1, boottime: int64(time.Hour)}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		if err := meta.Put(formatKey, []byte("1")); err != nil {
			return err
		}
		volumes, err := tx.CreateBucket(volumesBucket)
		if err != nil {
			return err
		}
		for i := range 40 {
			value, err := encodeValue(example(i), m)
			if err != nil {
				return err
			}
			if err := volumes.Put([]byte(example(i).ID), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func readFixture(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// damage returns data with two patches, cut off at cut unless that is 0. reseal makes the checksums
// of the meta pages right again, as no fault of a disk would.
func damage(data []byte, at1 uint16, patch1 []byte, at2 uint16, patch2 []byte, cut uint16, reseal bool) []byte {
	bad := bytes.Clone(data)
	copy(bad[min(int(at1), len(bad)):], patch1)
	copy(bad[min(int(at2), len(bad)):], patch2)
	if cut > 0 && int(cut) < len(bad) {
		bad = bad[:cut]
	}
	if !reseal {
		return bad
	}
	for _, at := range []int{0, minPageSize, os.Getpagesize()} {
		at += pageHeaderSize
		if at+metaSize > len(bad) || binary.NativeEndian.Uint32(bad[at:]) != boltMagic {
			continue
		}
		sum := fnv.New64a()
		_, _ = sum.Write(bad[at : at+metaChecksumAt])
		binary.NativeEndian.PutUint64(bad[at+metaChecksumAt:], sum.Sum64())
	}
	return bad
}

// importNoted reports whether the file says that the old driver's database was imported.
func importNoted(s *Store) (noted bool, err error) {
	err = s.db.view(func(tx *bbolt.Tx) error {
		noted = tx.Bucket(metaBucket).Get(legacyImportedKey) != nil
		return nil
	})
	return noted, err
}

// forgetImport makes the store one that has imported nothing yet from a file of that name.
func forgetImport(t testing.TB, s *Store, name string) {
	t.Helper()
	s.imported = false
	err := s.db.update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(legacyImportedKey) })
	if err == nil {
		err = os.Remove(s.importMark(name))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}
