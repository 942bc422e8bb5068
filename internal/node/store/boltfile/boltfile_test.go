package boltfile

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
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

// aTree is a file with a bucket that has a branch.
func aTree(t *testing.T) []byte {
	t.Helper()
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
	return good
}

// TestCheckRefusesLoops points the root bucket at pages that are no tree.
func TestCheckRefusesLoops(t *testing.T) {
	good := aTree(t)
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

// TestCheckRefusesDamage changes a good file in ways that bbolt would follow.
func TestCheckRefusesDamage(t *testing.T) {
	good := aTree(t)
	branch := 0
	for at := 2 * 4096; at < len(good) && branch == 0; at += 4096 {
		if order.Uint16(good[at+8:]) == branchPage {
			branch = at
		}
	}
	if branch == 0 {
		t.Fatal("the file has no branch")
	}
	// leaf is where a child of the branch is, key where its first or last key is.
	leaf := func(child int) int { return 4096 * int(order.Uint64(good[branch+headerSize+child*elementSize+8:])) }
	key := func(child int, last bool) int {
		at := leaf(child) + headerSize
		if last {
			at += elementSize * (int(order.Uint16(good[leaf(child)+10:])) - 1)
		}
		return at + int(order.Uint32(good[at+4:]))
	}
	first, _ := readMeta(bytes.NewReader(good), 0)
	second, _ := readMeta(bytes.NewReader(good), 4096)
	if second.Transaction > first.Transaction {
		first = second
	}
	free := 4096 * int(first.freelist)
	for name, damage := range map[string]func(bad []byte){
		"more free pages than there is room": func(bad []byte) { order.PutUint16(bad[free+10:], 5000) },
		"a free page that has a use": func(bad []byte) {
			order.PutUint16(bad[free+10:], 1)
			order.PutUint64(bad[free+headerSize:], uint64(branch/4096))
		},
		"a list of free pages that is none":  func(bad []byte) { order.PutUint16(bad[free+8:], leafPage) },
		"a page that says it is another one": func(bad []byte) { order.PutUint64(bad[leaf(1):], order.Uint64(bad[leaf(2):])) },
		"a page that takes the next one":     func(bad []byte) { order.PutUint32(bad[leaf(1)+12:], 1) },
		"a page that takes all":              func(bad []byte) { order.PutUint32(bad[leaf(1)+12:], 1<<31) },
		"a page of another kind":             func(bad []byte) { order.PutUint16(bad[leaf(1)+8:], 0x40) },
		"a first key before its page":        func(bad []byte) { copy(bad[key(1, false):], "0000") },
		"a last key after its page":          func(bad []byte) { copy(bad[key(1, true):], "9999") },
		"the same key twice":                 func(bad []byte) { copy(bad[key(1, true):], bad[key(1, false):key(1, false)+4]) },
		"a branch without children":          func(bad []byte) { order.PutUint16(bad[branch+10:], 0) },
		"more elements than there is room":   func(bad []byte) { order.PutUint16(bad[leaf(1)+10:], 1000) },
	} {
		bad := bytes.Clone(good)
		damage(bad)
		if bytes.Equal(bad, good) {
			t.Errorf("%s: nothing was changed", name)
		}
		if err := Check(bytes.NewReader(bad), int64(len(bad))); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}

// TestMetaThatNobodyWrote: a meta page with a good checksum still has to make sense.
func TestMetaThatNobodyWrote(t *testing.T) {
	good := aTree(t)
	for name, change := range map[string]func(meta []byte){
		"another magic":                  func(meta []byte) { order.PutUint32(meta[0:], magic+1) },
		"another version":                func(meta []byte) { order.PutUint32(meta[4:], version+1) },
		"tiny pages":                     func(meta []byte) { order.PutUint32(meta[8:], 512) },
		"huge pages":                     func(meta []byte) { order.PutUint32(meta[8:], 1<<30) },
		"pages of an odd size":           func(meta []byte) { order.PutUint32(meta[8:], 4096+1024) },
		"more pages than the file has":   func(meta []byte) { order.PutUint64(meta[40:], uint64(len(good))) },
		"a root outside of the file":     func(meta []byte) { order.PutUint64(meta[16:], 1<<40) },
		"free pages outside of the file": func(meta []byte) { order.PutUint64(meta[32:], 1<<40) },
	} {
		bad := bytes.Clone(good)
		for _, at := range []int{0, 4096} {
			meta := bad[at+headerSize : at+headerSize+metaSize]
			change(meta)
			sum := fnv.New64a()
			_, _ = sum.Write(meta[:metaSize-8])
			order.PutUint64(meta[metaSize-8:], sum.Sum64())
		}
		if err := Check(bytes.NewReader(bad), int64(len(bad))); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}
