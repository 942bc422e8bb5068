package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/store"
	"github.com/katbox/katbox/soak/testbed"
)

// checkRecords checks that the records say what the kubelet was answered.
func (s *scene) checkRecords() {
	s.t.Helper()
	known, endedNow := s.records(s.ended)
	for _, v := range s.volumes {
		v.lookAtRecord(known)
	}
	s.judge("by the records after the crash")
	if s.ended == nil {
		return
	}
	if record := known[volume.ID(s.ended.id)]; record.Phase == volume.Retained && !bytes.Equal(endedNow, s.endedRecord) {
		s.t.Errorf("the record of volume %s of pod %s has changed: %+v", s.ended.id, s.ended.pod, record)
	}
}

// records returns the records on disk and in the journal, and the bytes of one volume's. It works on a copy:
// opening the file would change it.
func (s *scene) records(one *playedVolume) (known map[volume.ID]volume.Record, raw []byte) {
	s.t.Helper()
	path := filepath.Join(s.dir, "copy.db")
	for _, suffix := range []string{"", ".journal-0", ".journal-1"} {
		content, err := testbed.ReadUnforked(filepath.Join(s.workdir(), recordsFile+suffix))
		switch {
		case errors.Is(err, fs.ErrNotExist) && suffix == "":
			return nil, nil
		case errors.Is(err, fs.ErrNotExist):
			err = os.RemoveAll(path + suffix)
		case err == nil:
			err = testbed.WriteUnforked(path+suffix, content)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	records, err := store.Open(path)
	if err != nil {
		s.t.Fatal(err)
	}
	known = map[volume.ID]volume.Record{}
	damaged, err := records.Load(time.Now(), func(record volume.Record) { known[record.ID] = record })
	if err := errors.Join(err, records.Close()); err != nil || len(damaged) > 0 {
		s.t.Fatalf("%v, damaged %v", err, damaged)
	}
	if one != nil {
		raw = s.rawRecord(path, one)
	}
	return known, raw
}

func (s *scene) rawRecord(path string, v *playedVolume) (raw []byte) {
	s.t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte("volumes")); b != nil {
			raw = bytes.Clone(b.Get([]byte(v.id)))
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}
