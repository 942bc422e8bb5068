package store

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestLegacyPlace(t *testing.T) {
	tests := []struct {
		name    string
		path    string
		workdir string
		key     string
		want    string // pod/volume
		wantErr string
	}{
		{"below", "/csi-data-dir/pod/id", "/csi-data-dir", "id", "pod/id", ""},
		{"below, workdir with slash", "/csi-data-dir/pod/id", "/csi-data-dir/", "id", "pod/id", ""},
		{"below, unclean", "/csi-data-dir//pod/./x/../id/", "/csi-data-dir", "id", "pod/id", ""},
		{"below the root", "/pod/id", "/", "id", "pod/id", ""},
		{"other prefix", "/csi-data-dir/pod/id", "/var/lib/katbox", "id", "pod/id", ""},
		{"other prefix, deep", "/a/b/c/pod/id", "/var/lib/katbox", "id", "pod/id", ""},
		{"prefix is not a directory of it", "/csi-data-dir-2/pod/id", "/csi-data-dir", "id", "pod/id", ""},
		{"below, too deep", "/csi-data-dir/x/pod/id", "/csi-data-dir", "id", "", "<working directory>/<pod>/<volume>"},
		{"below, no pod", "/csi-data-dir/id", "/csi-data-dir", "id", "", "<working directory>/<pod>/<volume>"},
		{"the workdir itself", "/csi-data-dir", "/csi-data-dir", "csi-data-dir", "", "no working directory"},
		{"other prefix, no pod", "/csi-data-dir/id", "/var/lib/katbox", "id", "", "no working directory"},
		{"one element", "/x", "/csi-data-dir", "x", "", "no working directory"},
		{"root", "/", "/csi-data-dir", "", "", "no working directory"},
		{"empty", "", "/csi-data-dir", "id", "", "not absolute"},
		{"relative", "a/pod/id", "/csi-data-dir", "id", "", "not absolute"},
		{"leaves", "/csi-data-dir/../../etc/passwd", "/csi-data-dir", "passwd", "", "no working directory"},
		{"ends in dot", "/csi-data-dir/pod/.", "/csi-data-dir", ".", "", "<working directory>/<pod>/<volume>"},
		{"ends in dots", "/a/b/pod/..", "/csi-data-dir", "..", "", "no working directory"},
		{"hidden pod", "/csi-data-dir/.trash/id", "/csi-data-dir", "id", "", "pod UID begins with a dot"},
		{"hidden volume", "/csi-data-dir/pod/.id", "/csi-data-dir", ".id", "", "volume ID begins with a dot"},
		{"NUL", "/csi-data-dir/p\x00d/id", "/csi-data-dir", "id", "", "NUL"},
		{"other key", "/csi-data-dir/pod/id", "/csi-data-dir", "other", "", "does not end in its key"},
		{"no key", "/csi-data-dir/pod/id", "/csi-data-dir", "", "", "does not end in its key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod, id, err := legacyPlace(tt.path, tt.workdir, tt.key)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %q, %q, %v; want an error with %q", pod, id, err, tt.wantErr)
				}
				return
			}
			if err != nil || string(pod)+"/"+string(id) != tt.want {
				t.Errorf("got %q, %q, %v; want %q", pod, id, err, tt.want)
			}
		})
	}
}

func TestDecodeLegacyVolume(t *testing.T) {
	const path = `"path":"/csi-data-dir/pod/id"`
	tests := []struct {
		name    string
		value   string
		wantErr string
	}{
		{"as written", `{"name":"ephemeral-id","id":"id","podUUID":"pod","size":1099511627776,` + path +
			`,"accessType":0,"ephemeral":true}`, ""},
		{"least", `{"id":"id","podUUID":"pod",` + path + `}`, ""},
		{"empty", ``, "unexpected end"},
		{"cut off", `{"id":"id"`, "unexpected end"},
		{"null", `null`, "not absolute"},
		{"other ID", `{"id":"x","podUUID":"pod",` + path + `}`, "is not its key"},
		{"other pod", `{"id":"id","podUUID":"x",` + path + `}`, "is not in its path"},
		{"no path", `{"id":"id","podUUID":"pod"}`, "not absolute"},
		{"wrong type", `{"id":1}`, "cannot unmarshal"},
	}
	want := volume.Record{ID: "id", Pod: "pod", Phase: volume.Published}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeLegacyVolume([]byte("id"), []byte(tt.value), "/csi-data-dir")
			checkLegacy(t, got, want, err, tt.wantErr)
		})
	}
}

func TestDecodeLegacyDeleted(t *testing.T) {
	const path = `,"path":"/csi-data-dir/pod/id"}`
	tests := []struct {
		name    string
		value   string
		wantErr string
	}{
		{"as written", `{"deleteTime":"2024-05-01T12:00:00.5+02:00","lifespan":43200000000000` + path, ""},
		{"empty", ``, "unexpected end"},
		{"no time", `{"lifespan":1` + path, "deleteTime is missing"},
		{"zero time", `{"deleteTime":"0001-01-01T00:00:00Z","lifespan":1` + path, "deleteTime is missing"},
		{"odd time", `{"deleteTime":"yesterday","lifespan":1` + path, "parsing time"},
		{"early time", `{"deleteTime":"1969-12-31T23:59:59Z","lifespan":1` + path, "before 1970"},
		{"no lifespan", `{"deleteTime":"2024-05-01T12:00:00Z"` + path, "lifespan is missing"},
		{"negative lifespan", `{"deleteTime":"2024-05-01T12:00:00Z","lifespan":-1` + path, "negative"},
		{"fraction", `{"deleteTime":"2024-05-01T12:00:00Z","lifespan":1.5` + path, "cannot unmarshal"},
		{"too long", `{"deleteTime":"2024-05-01T12:00:00Z","lifespan":9223372036854775808` + path, "cannot unmarshal"},
		{"no path", `{"deleteTime":"2024-05-01T12:00:00Z","lifespan":1}`, "not absolute"},
	}
	at := time.Date(2024, 5, 1, 10, 0, 0, 5e8, time.UTC)
	want := volume.Record{ID: "id", Pod: "pod", Phase: volume.Retained, Unpublished: at, Lifespan: 12 * time.Hour}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeLegacyDeleted([]byte("id"), []byte(tt.value), "/csi-data-dir")
			got.Unpublished = got.Unpublished.UTC()
			checkLegacy(t, got, want, err, tt.wantErr)
		})
	}
}

func checkLegacy(t *testing.T, got, want volume.Record, err error, wantErr string) {
	t.Helper()
	switch {
	case wantErr != "":
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("got %+v, %v; want an error with %q", got, err, wantErr)
		}
	case err != nil || !reflect.DeepEqual(got, want):
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}
