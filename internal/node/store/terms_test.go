package store

import (
	"reflect"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestEachTermIsStored: a field of the terms that the record lacks would be forgotten at the next start.
func TestEachTermIsStored(t *testing.T) {
	r := volume.Record{ID: "csi-a", Pod: "pod", Phase: volume.Published}
	setEach(reflect.ValueOf(&r.Terms).Elem())
	value, err := encodeValue(r, moment{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeValue([]byte(r.ID), value, moment{})
	if err != nil || got.Terms != r.Terms {
		t.Errorf("%+v, %v, want %+v", got.Terms, err, r.Terms)
	}
}

// setEach sets each field to 1, or to what comes closest.
func setEach(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			setEach(field)
		}
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		v.SetString("1")
	}
}
