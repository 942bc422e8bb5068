package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"go.etcd.io/bbolt"
)

// recordsFile is where the daemon has its records, in its working directory.
const recordsFile = ".katbox.db"

// retainedPhase is the number of the phase that a retained volume is in.
const retainedPhase = 4

// halfFull is how full a page of the records is written, as in a file that grew
// by itself.
const halfFull = 0.5

// together is how many records are written in one transaction, so that they need
// not all be in memory twice.
const together = 100_000

// publishedFor is how long before its end each pod is said to have begun.
const publishedFor = time.Hour

// recordOf is what format 1 keeps of a retained volume. The times of the boot are
// left out, so that the daemon goes by the wall clock.
type recordOf struct {
	Pod         string `cbor:"1,keyasint"`
	Namespace   string `cbor:"2,keyasint"`
	PodName     string `cbor:"3,keyasint"`
	Phase       uint8  `cbor:"4,keyasint"`
	Unpublished int64  `cbor:"6,keyasint"`
	Lifespan    int64  `cbor:"7,keyasint"`
	VolumeName  string `cbor:"10,keyasint"`
	Account     string `cbor:"11,keyasint"`
	Published   int64  `cbor:"12,keyasint"`
}

// retainedRecord is the value of a retained volume.
func retainedRecord(n names, where string, unpublished time.Time, lifespan time.Duration) ([]byte, error) {
	body, err := cbor.Marshal(recordOf{
		Pod: n.pod, Namespace: where, PodName: n.podName, Phase: retainedPhase,
		Unpublished: unpublished.UnixNano(), Lifespan: int64(lifespan),
		VolumeName: volumeName, Account: account, Published: unpublished.Add(-publishedFor).Unix(),
	})
	if err != nil {
		return nil, fmt.Errorf("record of volume %s: %w", n.id, err)
	}
	const version = 1
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, castagnoli, []byte(n.id))
	sum = crc32.Update(sum, castagnoli, []byte{version})
	sum = crc32.Update(sum, castagnoli, body)
	return append(binary.BigEndian.AppendUint32([]byte{version}, sum), body...), nil
}

// writeRecords makes a new file of records in a working directory. The volumes
// are retained since what unpublished says of each, in two namespaces. They are sorted
// on the way.
func writeRecords(work string, list []names, unpublished func(int) time.Time, lifespan time.Duration) error {
	// Nothing reads it before it is whole, so that one sync will do.
	db, err := bbolt.Open(filepath.Join(work, recordsFile), 0o600, &bbolt.Options{NoSync: true, NoGrowSync: true})
	if err != nil {
		return fmt.Errorf("make the records: %w", err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte("volumes")); err != nil {
			return err
		}
		meta, err := tx.CreateBucket([]byte("meta"))
		if err != nil {
			return err
		}
		return meta.Put([]byte("format"), []byte("1"))
	})
	if err != nil {
		return fmt.Errorf("make the records: %w", err)
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(list[a].id, list[b].id) })
	for part := range slices.Chunk(order, together) {
		err := db.Update(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket([]byte("volumes"))
			bucket.FillPercent = halfFull
			for _, i := range part {
				value, err := retainedRecord(list[i], namespaceOf(i), unpublished(i), lifespan)
				if err != nil {
					return err
				}
				if err := bucket.Put([]byte(list[i].id), value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write the records: %w", err)
		}
	}
	if err := db.Sync(); err != nil {
		return fmt.Errorf("sync the records: %w", err)
	}
	return nil
}

// forgetRecords takes the records of all volumes out of the file again.
func forgetRecords(work string, list []names) error {
	// The other type of free list takes time for each free page.
	db, err := bbolt.Open(filepath.Join(work, recordsFile), 0o600,
		&bbolt.Options{NoSync: true, NoGrowSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("open the records: %w", err)
	}
	defer db.Close()
	// In the order of the keys each page is written once.
	sorted := slices.SortedFunc(slices.Values(list), func(a, b names) int { return strings.Compare(a.id, b.id) })
	for part := range slices.Chunk(sorted, together) {
		err := db.Update(func(tx *bbolt.Tx) error {
			for _, n := range part {
				if err := tx.Bucket([]byte("volumes")).Delete([]byte(n.id)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("forget the records: %w", err)
		}
	}
	if err := db.Sync(); err != nil {
		return fmt.Errorf("sync the records: %w", err)
	}
	return nil
}
