package socket

import (
	"strings"
	"testing"
	"unicode"
)

func TestPath(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///csi/csi.sock": "/csi/csi.sock", "unix:/csi/csi.sock": "/csi/csi.sock",
	} {
		if got, err := Path(endpoint); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", endpoint, got, err, want)
		}
	}
	for _, endpoint := range []string{"", "tcp://127.0.0.1:1", "/csi/csi.sock", "unix://", "unix:csi.sock",
		"unix://tmp/csi.sock", "unix:@csi", "unix:///" + strings.Repeat("x", 107)} {
		if got, err := Path(endpoint); err == nil {
			t.Errorf("%q: %q, want an error", endpoint, got)
		}
	}
}

// FuzzPath looks for an endpoint that is taken for another socket than the one it names.
func FuzzPath(f *testing.F) {
	f.Add("unix:///csi/csi.sock")
	f.Add("unix:/csi/csi.sock")
	f.Fuzz(func(t *testing.T, endpoint string) {
		path, err := Path(endpoint)
		if err != nil {
			if path != "" || !strings.Contains(err.Error(), "endpoint") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q: %q, %v", endpoint, path, err)
			}
			return
		}
		if path[0] != '/' || len(path) > 107 || endpoint != "unix://"+path && endpoint != "unix:"+path {
			t.Errorf("%q: %q", endpoint, path)
		}
	})
}
