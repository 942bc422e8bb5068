package logkeys

import (
	"reflect"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestAbout(t *testing.T) {
	whole := volume.Record{ID: "csi-1", Pod: "uid", Namespace: "batch", PodName: "job", VolumeName: "scratch"}
	for _, tt := range []struct {
		record volume.Record
		want   []any
	}{
		{whole, []any{"namespace", "batch", "pod", "job", "podUID", "uid", "volume", "scratch", "volumeID", "csi-1", "more", 1}},
		{volume.Record{ID: "csi-1", Pod: "uid"}, []any{"podUID", "uid", "volumeID", "csi-1", "more", 1}},
		{volume.Record{}, []any{"more", 1}},
	} {
		if got := About(tt.record, "more", 1); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("about %+v: %v, want %v", tt.record, got, tt.want)
		}
	}
}
