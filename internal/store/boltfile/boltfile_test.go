package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestCheckAcceptsWhatBoltWrites keeps the check from refusing a good file.
func TestCheckAcceptsWhatBoltWrites(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "any.db")
	for round := range 10 {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, PageSize: 4096, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			err := db.Update(func(tx *bbolt.Tx) error {
				for _, name := range []string{"volumes", "meta", "nested"} {
					b, err := tx.CreateBucketIfNotExists([]byte(name))
					if err != nil {
						return err
					}
					if name == "nested" {
						if b, err = b.CreateBucketIfNotExists([]byte(fmt.Sprint(rng.IntN(5)))); err != nil {
							return err
						}
					}
					for range rng.IntN(1000) {
						key := fmt.Appendf(nil, "%d", rng.IntN(20_000))
						if rng.IntN(3) == 0 {
							err = b.Delete(key)
						} else {
							err = b.Put(key, make([]byte, rng.IntN(300)*rng.IntN(1+rng.IntN(40))))
						}
						if err != nil {
							return err
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestCheckRefusesLoops points the root bucket at pages that are no tree.
func TestCheckRefusesLoops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "any.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("volumes"))
		for i := 0; i < 2000 && err == nil; i++ {
			err = b.Put(fmt.Appendf(nil, "%04d", i), make([]byte, 100))
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	branches := 0
	for at := 2 * 4096; at < len(good); at += 4096 {
		if order.Uint16(good[at+8:]) != branchPage {
			continue
		}
		branches++
		for name, child := range map[string]uint64{
			"itself": uint64(at / 4096), "a meta page": 1, "nothing": 1 << 40,
			"a page that has a use": order.Uint64(good[at+headerSize+elementSize+8:]),
		} {
			bad := bytes.Clone(good)
			order.PutUint64(bad[at+headerSize+8:], child)
			if err := Check(bytes.NewReader(bad), int64(len(bad))); err == nil {
				t.Errorf("a branch that leads to %s was accepted", name)
			}
		}
	}
	if branches == 0 {
		t.Error("the file has no branch")
	}
}
