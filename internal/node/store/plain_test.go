package store

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// setAll gives each field of a struct a value, by its number; those of other types none.
func setAll(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			setAll(f)
		case reflect.String:
			f.SetString(strings.Repeat("text", 1+i))
		case reflect.Int64:
			f.SetInt(-1000 << i)
		case reflect.Uint8, reflect.Uint64:
			f.SetUint(uint64(100 + i))
		}
	}
}

// TestPlainKnowsEachField: a record with all fields that the format has, but targets, needs no library.
func TestPlainKnowsEachField(t *testing.T) {
	var want storedRecord
	setAll(reflect.ValueOf(&want).Elem())
	if want.AttachID == "" || want.HoldFor == 0 {
		t.Fatalf("not all fields are set: %+v", want)
	}
	body := marshal(t, want)
	if got, ok := parsePlain(string(body)); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("parsePlain = %+v, %t\n             want %+v", got, ok, want)
	}
	for cut := range body {
		if got, ok := parsePlain(string(body[:cut])); ok {
			t.Errorf("cut off after %d of %d bytes it is %+v", cut, len(body), got)
		}
	}
}

// FuzzPlain looks for a body that the library refuses, or reads as another record.
func FuzzPlain(f *testing.F) {
	r := volume.Record{ID: "a", Pod: "pod", PodName: "job"}.Retain(time.Now(), time.Hour)
	stored, err := storeRecord(withPromise(r, "text", true), moment{now: time.Now(), boot: 7, boottime: 1 << 40})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(marshal(f, stored))
	setAll(reflect.ValueOf(&stored).Elem())
	f.Add(marshal(f, stored))
	for _, body := range []string{
		"", "\xa0", "\xa0\x00", "\xa1\x01\x61a", "\xa1\x18\x01\x61a", "\xb8\x01\x01\x78\x01a", "\xbf\x01\x61a\xff", "\xa2\x04\x02\x04\x05",
		"\xa2\x04\x02\x01\x61a", "\xa1\x04\x19\x01\x02", "\xa1\x00\x00", "\xa1\x20\x00", "\xa1\x06\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
		"\xa1\x06\x1b\x80\x00\x00\x00\x00\x00\x00\x00", "\xa1\x08\x20", "\xa1\x01\x7b\xff\xff\xff\xff\xff\xff\xff\xff", "\xa1\x01\x41a",
		"\xa1\x01\xf6", "\xa1\x01\x61\xff", "\xa1\x06\x1c", "\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x61a",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := parsePlain(string(body))
		if !ok {
			return
		}
		want, err := unmarshalBody(body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parsePlain = %+v\n      library %+v, %v", got, want, err)
		}
	})
}
