package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// valueVersion is the first byte of each value.
	valueVersion = 1
	// valueHeader is the length of the version byte and the checksum.
	valueHeader = 5
)

// storedRecord is a record on disk; see the package comment. A number is never used again.
type storedRecord struct {
	Pod         string         `cbor:"1,keyasint"`
	Namespace   string         `cbor:"2,keyasint,omitempty"`
	PodName     string         `cbor:"3,keyasint,omitempty"`
	Phase       uint8          `cbor:"4,keyasint"`
	Targets     []storedTarget `cbor:"5,keyasint,omitempty"`
	Unpublished int64          `cbor:"6,keyasint,omitempty"`
	Lifespan    int64          `cbor:"7,keyasint,omitempty"`
	Boot        uint64         `cbor:"8,keyasint,omitempty"`
	Boottime    int64          `cbor:"9,keyasint,omitempty"`
	VolumeName  string         `cbor:"10,keyasint,omitempty"`
	Account     string         `cbor:"11,keyasint,omitempty"`
	Published   int64          `cbor:"12,keyasint,omitempty"`
	storedOwner
	storedPromise
}

// storedOwner has the fields of volume.Owner.
type storedOwner struct {
	Verdict      uint64 `cbor:"13,keyasint,omitempty"`
	NamespaceUID string `cbor:"14,keyasint,omitempty"`
	Kind         string `cbor:"15,keyasint,omitempty"`
	Name         string `cbor:"16,keyasint,omitempty"`
	UID          string `cbor:"17,keyasint,omitempty"`
	Job          string `cbor:"18,keyasint,omitempty"`
	JobIndex     string `cbor:"19,keyasint,omitempty"`
	Seal         string `cbor:"37,keyasint,omitempty"`
}

func storeOwner(o volume.Owner) storedOwner {
	return storedOwner{uint64(o.Verdict), o.NamespaceUID, o.Kind, o.Name, o.UID, o.Job, o.JobIndex, o.Seal}
}

// owner returns the owner that is stored. One that cannot be used is no reason to lose the record.
func (s *storedOwner) owner() volume.Owner {
	o := volume.Owner{Verdict: volume.Verdict(min(s.Verdict, math.MaxUint8)),
		NamespaceUID: s.NamespaceUID, Kind: s.Kind, Name: s.Name, UID: s.UID, Job: s.Job, JobIndex: s.JobIndex, Seal: s.Seal}
	if o.Check() != nil {
		o.Seal = ""
	}
	if o.Check() != nil {
		return volume.Owner{}
	}
	return o
}

// storedTarget has the fields of volume.Target in the same order, or it does not compile.
type storedTarget struct {
	Path        string   `cbor:"1,keyasint"`
	ReadOnly    bool     `cbor:"2,keyasint,omitempty"`
	Flags       []string `cbor:"3,keyasint,omitempty"`
	MultiWriter bool     `cbor:"4,keyasint,omitempty"`
	Leaving     bool     `cbor:"5,keyasint,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decoding accepts any bytes in a path, because the encoder writes them, and refuses a map that has
// a key twice, because the encoder writes none.
var decoding = must(cbor.DecOptions{
	UTF8:      cbor.UTF8DecodeInvalid,
	DupMapKey: cbor.DupMapKeyEnforcedAPF,
}.DecMode())

var encoding = must(cbor.CoreDetEncOptions().EncMode())

// must is for constant options.
func must[T any](mode T, err error) T {
	if err != nil {
		panic(err)
	}
	return mode
}

// encodeValue returns the value to store for a record, written at m. It refuses a record that
// decodeValue would not return.
func encodeValue(r volume.Record, m moment) ([]byte, error) {
	stored, err := storeRecord(r, m)
	if err != nil {
		return nil, err
	}
	body, err := encoding.Marshal(stored)
	if err != nil {
		return nil, err
	}
	return sealValue([]byte(r.ID), body), nil
}

// storeRecord returns what is stored for a record, without its ID.
func storeRecord(r volume.Record, m moment) (storedRecord, error) {
	stored := storedRecord{
		Pod:       string(r.Pod),
		Namespace: r.Namespace,
		PodName:   r.PodName,
		Phase:     uint8(r.Phase),
		Lifespan:  int64(r.Lifespan),

		VolumeName: r.VolumeName,
		Account:    r.ServiceAccount,
		Published:  max(r.Published.Unix(), 0),

		storedOwner:   storeOwner(r.Owner),
		storedPromise: storePromise(r),
	}
	stored.Unpublished, stored.Boot, stored.Boottime = m.stored(r.Unpublished)
	for _, t := range r.Targets {
		stored.Targets = append(stored.Targets, storedTarget(t))
	}
	return stored, checkRecord(&r)
}

// sealValue makes a body the value of a key.
func sealValue(key, body []byte) []byte {
	value := make([]byte, valueHeader, valueHeader+len(body))
	value[0] = valueVersion
	value = append(value, body...)
	binary.BigEndian.PutUint32(value[1:], checksum(key, value))
	return value
}

// openValue returns the body in the value of a key.
func openValue(key, value []byte) ([]byte, error) {
	if len(value) < valueHeader {
		return nil, fmt.Errorf("value of %d bytes is cut off", len(value))
	}
	if value[0] != valueVersion {
		return nil, fmt.Errorf("value has version %d, this Katbox knows %d", value[0], valueVersion)
	}
	if binary.BigEndian.Uint32(value[1:]) != checksum(key, value) {
		return nil, errors.New("checksum does not match")
	}
	return value[valueHeader:], nil
}

// decodeValue returns the record in a value, with times on the clock of m.now.
func decodeValue(key, value []byte, m moment) (volume.Record, error) {
	body, err := openValue(key, value)
	if err != nil {
		return volume.Record{}, err
	}
	var stored storedRecord
	if err := decoding.Unmarshal(body, &stored); err != nil {
		return volume.Record{}, err
	}
	return stored.record(volume.ID(key), m)
}

// record returns the stored record of a volume, with times on the clock of m.now.
func (stored *storedRecord) record(id volume.ID, m moment) (volume.Record, error) {
	if stored.Unpublished < 0 {
		return volume.Record{}, fmt.Errorf("unpublished %d is before 1970", stored.Unpublished)
	}
	r := volume.Record{
		ID:          id,
		Pod:         volume.PodUID(stored.Pod),
		Namespace:   stored.Namespace,
		PodName:     stored.PodName,
		Phase:       volume.Phase(stored.Phase),
		Unpublished: m.time(stored.Unpublished, stored.Boot, stored.Boottime),
		Lifespan:    time.Duration(stored.Lifespan),

		VolumeName:     stored.VolumeName,
		ServiceAccount: stored.Account,
		Owner:          stored.owner(),
	}
	stored.into(&r)
	if stored.Published > 0 {
		r.Published = time.Unix(stored.Published, 0)
	}
	for _, t := range stored.Targets {
		r.Targets = append(r.Targets, volume.Target(t))
	}
	return r, checkFate(&r)
}

// checkRecord refuses what must not be written: what must not be read either, owners that no gateway
// has sent, and promises that a reader would leave out.
func checkRecord(r *volume.Record) error {
	if err := checkFate(r); err != nil {
		return err
	}
	if err := r.Owner.Check(); err != nil {
		return err
	}
	return checkPromise(r)
}

// checkFate refuses what must be neither written nor read: names that lead out of the working
// directory, and what would end a lifespan early.
func checkFate(r *volume.Record) error {
	if _, err := volume.ParseID("volume ID", string(r.ID)); err != nil {
		return err
	}
	if _, err := volume.ParsePodUID("pod UID", string(r.Pod)); err != nil {
		return err
	}
	switch {
	case !r.Phase.Valid():
		return fmt.Errorf("phase %d does not exist", uint8(r.Phase))
	case r.Lifespan < 0:
		return fmt.Errorf("lifespan %v is negative", r.Lifespan)
	case r.Phase == volume.Retained && r.Unpublished.IsZero():
		return errors.New("retained, but without the time since when")
	}
	return nil
}

// checksum covers everything except itself.
func checksum(key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, key)
	sum = crc32.Update(sum, castagnoli, value[:1])
	return crc32.Update(sum, castagnoli, value[valueHeader:])
}
