package store

import (
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/katbox/katbox/internal/model/volume"
)

// seal returns a value with the given version and body and the right checksum.
func seal(key string, version byte, body []byte) []byte {
	value := append([]byte{version, 0, 0, 0, 0}, body...)
	sum := checksum([]byte(key), value)
	for i := range 4 {
		value[1+i] = byte(sum >> (24 - 8*i))
	}
	return value
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	body, err := encoding.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestDecodeValueRefuses(t *testing.T) {
	good, err := encodeValue(published("a"), moment{})
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1
	stored := func(change func(map[int]any)) []byte {
		m := map[int]any{1: "pod", 4: 2}
		change(m)
		return seal("a", valueVersion, marshal(t, m))
	}
	tests := []struct {
		name  string
		key   string
		value []byte
		want  string
	}{
		{"empty", "a", nil, "cut off"},
		{"cut off", "a", good[:4], "cut off"},
		{"newer version", "a", seal("a", 2, good[valueHeader:]), "version 2"},
		{"flipped bit", "a", flipped, "checksum"},
		{"other key", "b", good, "checksum"},
		{"no body", "a", seal("a", valueVersion, nil), "EOF"},
		{"not CBOR", "a", seal("a", valueVersion, []byte{0xff}), "cbor"},
		{"not a map", "a", seal("a", valueVersion, []byte{0x01}), "cannot unmarshal"},
		{"trailing bytes", "a", seal("a", valueVersion, append(good[valueHeader:len(good):len(good)], 0)), "extraneous"},
		{"key twice", "a", seal("a", valueVersion, []byte{0xa2, 4, 2, 4, 5}), "duplicate"},
		{"bad phase", "a", stored(func(m map[int]any) { m[4] = 9 }), "phase 9"},
		{"no phase", "a", stored(func(m map[int]any) { delete(m, 4) }), "phase 0"},
		{"huge phase", "a", stored(func(m map[int]any) { m[4] = 258 }), "overflow"},
		{"no pod", "a", stored(func(m map[int]any) { delete(m, 1) }), "pod UID is missing"},
		{"pod leaves the directory", "a", stored(func(m map[int]any) { m[1] = ".." }), "pod UID begins with a dot"},
		{"negative lifespan", "a", stored(func(m map[int]any) { m[7] = -1 }), "negative"},
		{"boot without a number", "a", stored(func(m map[int]any) { m[8] = -1 }), "cannot unmarshal"},
		{"time before 1970", "a", stored(func(m map[int]any) { m[6] = -1 }), "before 1970"},
		{"retained since never", "a", stored(func(m map[int]any) { m[4] = 4 }), "without the time"},
		{"verdict is a text", "a", stored(func(m map[int]any) { m[13] = "yes" }), "cannot unmarshal"},
		{"ID leaves the directory", "..", seal("..", valueVersion, good[valueHeader:]), "begins with a dot"},
		{"empty ID", "", seal("", valueVersion, good[valueHeader:]), "missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := decodeValue([]byte(tt.key), tt.value, moment{now: time.Now()})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("decodeValue = %+v, %v; want an error with %q", r, err, tt.want)
			}
		})
	}
}

func TestDecodeValueToleratesUnknownFields(t *testing.T) {
	body := marshal(t, map[int]any{1: "pod", 4: 2, 100: map[string]any{"later": []int{1}},
		5: []any{map[int]any{1: "/target", 50: "later"}}})
	r, err := decodeValue([]byte("a"), seal("a", valueVersion, body), moment{now: time.Now()})
	want := volume.Record{ID: "a", Pod: "pod", Phase: volume.Published, Targets: []volume.Target{{Path: "/target"}}}
	if err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("decodeValue = %+v, %v; want %+v", r, err, want)
	}
}

// TestValueBytes fails when the format changes by accident.
func TestValueBytes(t *testing.T) {
	value := []byte("\x01\x00\x00\x00\x00\xb8\x21" +
		"\x01\x63pod" + "\x02\x62ns" + "\x03\x63job" + "\x04\x04" +
		"\x05\x81\xa5\x01\x62/t\x02\xf5\x03\x81\x61f\x04\xf5\x05\xf5" +
		"\x06\x1b\x0f\xff\xff\xff\xff\xff\xff\xff" + "\x07\x1a\x3b\x9a\xca\x00" +
		"\x08\x1b\xfe\xdc\xba\x98\x76\x54\x32\x10" + "\x09\x39\x03\xe7" +
		"\x0a\x67scratch" + "\x0b\x65robot" + "\x0c\x1a\x66\x32\x2a\x40" +
		"\x0d\x01" + "\x0e\x64ns-1" + "\x0f\x63Job" + "\x10\x63job" + "\x11\x65job-1" + "\x12\x63nig" + "\x13\x62\x31\x37" +
		"\x14\x1b\x00\x00\x02\x7b\xa0\xae\x24\x00" + "\x15\x1a\x77\x35\x94\x00" + "\x16\x01" +
		"\x17\x1a\x40\x00\x00\x00" + "\x18\x18\x19\x03\xe8" + "\x18\x19\x19\x03\xff" + "\x18\x1a\x01" +
		"\x18\x1b\x01" + "\x18\x1c\x1a\x3b\x9a\xca\x00" + "\x18\x1d\x63ann" + "\x18\x1e\x63CI!" +
		"\x18\x1f\x1a\x4b\x00\x00\x01" + "\x18\x20\x65pod-2" + "\x18\x21\x61b")
	value = seal("a", value[0], value[valueHeader:])
	want := volume.Record{
		ID: "a", Pod: "pod", Namespace: "ns", PodName: "job", Phase: volume.Retained,
		Targets:     []volume.Target{{Path: "/t", ReadOnly: true, Flags: []string{"f"}, MultiWriter: true, Leaving: true}},
		Unpublished: time.Unix(0, 0x0fffffffffffffff),
		Lifespan:    time.Second,

		VolumeName: "scratch", ServiceAccount: "robot", Published: time.Unix(0x66322a40, 0),
		Owner: volume.Owner{Verdict: volume.Confirmed, NamespaceUID: "ns-1", Kind: "Job", Name: "job", UID: "job-1", Job: "nig", JobIndex: "17"},
		Terms: volume.Terms{
			Lifespan: 45*time.Minute + 30*time.Second, LifespanSucceeded: 2 * time.Second, Retain: volume.RetainOnFailure,
			Limit: volume.Size{Bytes: 1 << 30, Inodes: 1000}, Mode: 0o1777,
		},
		Outcome: volume.Succeeded,
		Hold:    volume.Hold{Kind: volume.Pinned, For: time.Second, By: "ann", Why: "CI!"},
		Project: 0x4b000001,
		Attach:  volume.Place{Pod: "pod-2", ID: "b"},
	}
	m := moment{now: want.Unpublished, boot: 0xfedcba9876543210, boottime: -1000}
	got, err := decodeValue([]byte("a"), value, m)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decodeValue = %+v, %v\n            want %+v", got, err, want)
	}
	encoded, err := encodeValue(want, m)
	if err != nil || string(encoded) != string(value) {
		t.Errorf("encodeValue = %x, %v\n            want %x", encoded, err, value)
	}
}

// TestOwnerThatCannotBeUsed: the record can, and its owner counts as not asked for.
func TestOwnerThatCannotBeUsed(t *testing.T) {
	for name, fields := range map[string]map[int]any{
		"of a later version":      {13: 7, 14: "ns-1"},
		"of a much later version": {13: uint64(math.MaxUint64)},
		"without a namespace":     {13: 1, 15: "Job"},
		"denied, with a name":     {13: 2, 16: "job"},
		"unasked, with a name":    {16: "job"},
		"long":                    {13: 1, 14: "ns-1", 16: strings.Repeat("j", 254)},
		"not printable":           {13: 1, 14: "ns-1", 18: "a\x1b[2J"},
		"not UTF-8":               {13: 1, 14: "ns-1", 19: "\xff"},
	} {
		fields[1], fields[4] = "pod", 2
		r, err := decodeValue([]byte("a"), seal("a", valueVersion, marshal(t, fields)), moment{now: time.Now()})
		want := volume.Record{ID: "a", Pod: "pod", Phase: volume.Published}
		if err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, r, err, want)
		}
	}
	// And it is not written.
	r := published("a")
	r.Owner = volume.Owner{Verdict: volume.Denied, Name: "job"}
	if _, err := encodeValue(r, moment{}); !errors.Is(err, volume.ErrInvalid) {
		t.Errorf("%+v was written, %v", r.Owner, err)
	}
}

// TestPublishTimeIsForPeople: whatever is stored there, the record can be used.
func TestPublishTimeIsForPeople(t *testing.T) {
	for _, stored := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		body := marshal(t, map[int]any{1: "pod", 4: 2, 12: stored})
		r, err := decodeValue([]byte("a"), seal("a", valueVersion, body), moment{now: time.Now()})
		if err != nil || r.Published.IsZero() != (stored <= 0) || stored > 0 && r.Published.Unix() != stored {
			t.Errorf("%d: published %v, %v", stored, r.Published, err)
		}
	}
	early := published("a")
	early.Published = time.Unix(-5, 0)
	value, err := encodeValue(early, moment{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := decodeValue([]byte("a"), value, moment{now: time.Now()}); err != nil || !r.Published.IsZero() {
		t.Errorf("before 1970: published %v, %v, want none", r.Published, err)
	}
}

func TestLoadKeepsDamagedValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := openStore(t, path)
	commit(t, s, put(published("good")))
	if err := s.db.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(volumesBucket)
		if err := b.Put([]byte("broken"), []byte("broken")); err != nil {
			return err
		}
		_, err := b.CreateBucket([]byte("bucket"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		records, damaged, err := loadAll(s, time.Now())
		if err != nil || len(records) != 1 || records[0].ID != "good" {
			t.Errorf("Load = %v, %v; want the good record", records, err)
		}
		if len(damaged) != 2 || damaged[0].ID != "broken" || damaged[1].ID != "bucket" {
			t.Errorf("damaged %v, want broken and bucket", damaged)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, path)
	}
	commit(t, s, put(published("broken")))
	if _, damaged, _ := loadAll(s, time.Now()); len(damaged) != 1 {
		t.Errorf("damaged %v after a new record was written, want bucket only", damaged)
	}
}
