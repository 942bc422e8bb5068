package verbs

import (
	"testing"

	"github.com/katbox/katbox/internal/model/api"
)

func TestModes(t *testing.T) {
	for _, test := range []struct {
		kind api.EntryType
		mode string
		want string
	}{
		{api.File, "0640", "-rw-r-----"}, {api.Directory, "1777", "drwxrwxrwt"}, {api.Directory, "3770", "drwxrws--T"},
		{api.File, "4755", "-rwsr-xr-x"},
		{api.File, "6644", "-rwSr-Sr--"}, {api.Symlink, "0777", "lrwxrwxrwx"}, {api.Mount, "", "m?????????"},
		{"else", "0640", "-"}, {api.File, "?", "-"},
	} {
		if got := modeOf(api.Entry{Type: test.kind, Mode: test.mode}); got != test.want {
			t.Errorf("%s %s is %s, want %s", test.kind, test.mode, got, test.want)
		}
	}
}
