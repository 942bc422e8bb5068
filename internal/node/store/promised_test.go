package store

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestPromiseThatCannotBeUsed: the record can be used, and so can the rest of the promise.
func TestPromiseThatCannotBeUsed(t *testing.T) {
	type fields map[int]any
	tests := map[string]struct {
		fields fields
		want   volume.Record
	}{
		"terms of a later version": {fields{20: 9, 22: 3, 26: 1}, volume.Record{Outcome: volume.Succeeded}},
		"negative terms":           {fields{20: -9, 31: 7}, volume.Record{Project: 7}},
		"longer after success":     {fields{20: 9, 21: 10}, volume.Record{}},
		"negative limit":           {fields{20: 9, 24: -1}, volume.Record{}},
		"mode with setuid":         {fields{20: 9, 25: 0o4777}, volume.Record{}},
		"huge mode":                {fields{20: 9, 25: uint64(1<<32 | 0o777)}, volume.Record{}},
		"huge retain":              {fields{20: 9, 22: 256}, volume.Record{}},
		"outcome of a later version": {fields{20: 9, 26: 4},
			volume.Record{Terms: volume.Terms{Lifespan: 9}}},
		"huge outcome":            {fields{26: uint64(math.MaxUint64)}, volume.Record{}},
		"outcome, but for a byte": {fields{26: 257}, volume.Record{}},
		"hold of a later version": {fields{26: 2, 27: 3, 28: 5, 29: "ann"}, volume.Record{Outcome: volume.Failed}},
		"hold without a kind":     {fields{28: 5}, volume.Record{}},
		"hold that ended before":  {fields{27: 1, 28: -5}, volume.Record{}},
		"hold by a terminal": {fields{27: 1, 28: 5, 29: "\x1b[2J", 30: "why"},
			volume.Record{Hold: volume.Hold{Kind: volume.Pinned, For: 5}}},
		"hold that says too much": {fields{27: 2, 28: 5, 29: "ann", 30: strings.Repeat("y", volume.MaxHoldWhy+1)},
			volume.Record{Hold: volume.Hold{Kind: volume.Released, For: 5}}},
		"huge project":        {fields{31: uint64(1 << 32)}, volume.Record{}},
		"attached and climbs": {fields{32: "..", 33: "b"}, volume.Record{}},
		"half of a place":     {fields{32: "pod-2"}, volume.Record{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.fields[1], tt.fields[4] = "pod", 2
			r, err := decodeValue([]byte("a"), seal("a", valueVersion, marshal(t, tt.fields)), moment{now: time.Now()})
			tt.want.ID, tt.want.Pod, tt.want.Phase = "a", "pod", volume.Published
			if err != nil || !reflect.DeepEqual(r, tt.want) {
				t.Errorf("%+v, %v\nwant %+v", r, err, tt.want)
			}
		})
	}
}

// TestPromiseThatIsNotWritten: what would be read as nothing is refused.
func TestPromiseThatIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(*volume.Record){
		"terms":        func(r *volume.Record) { r.Terms = volume.Terms{LifespanSucceeded: 1} },
		"outcome":      func(r *volume.Record) { r.Outcome = volume.Stopped + 1 },
		"hold":         func(r *volume.Record) { r.Hold = volume.Hold{Kind: volume.Pinned, By: "a\nb"} },
		"attached pod": func(r *volume.Record) { r.Attach = volume.Place{Pod: "../x", ID: "b"} },
		"attached ID":  func(r *volume.Record) { r.Attach = volume.Place{Pod: "pod-2"} },
	} {
		r := published("a")
		change(&r)
		if _, err := encodeValue(r, moment{}); err == nil {
			t.Errorf("%s: %+v was written", name, r)
		}
	}
}

// TestEarlierVersionReadsPromise: a daemon from before these fields reads a record that has them, and
// what it writes is a record without.
func TestEarlierVersionReadsPromise(t *testing.T) {
	r := withPromise(published("a"), "why", true)
	value, err := encodeValue(r, moment{})
	if err != nil {
		t.Fatal(err)
	}
	var earlier struct { // what such a version decodes into
		Pod     string         `cbor:"1,keyasint"`
		Phase   uint8          `cbor:"4,keyasint"`
		Targets []storedTarget `cbor:"5,keyasint,omitempty"`
	}
	if err := decoding.Unmarshal(value[valueHeader:], &earlier); err != nil {
		t.Fatal(err)
	}
	got, err := decodeValue([]byte("a"), seal("a", valueVersion, marshal(t, earlier)), moment{now: time.Now()})
	want := volume.Record{ID: "a", Pod: r.Pod, Phase: r.Phase, Targets: r.Targets}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}
