package program

import (
	"strings"
	"testing"
)

func TestPrintVersion(t *testing.T) {
	for revision, want := range map[string]string{
		"":        "katbox v1.2.3 (unknown commit)\n",
		"0123456": "katbox v1.2.3 (commit 0123456)\n",
		"0123456789abcdef0123456789abcdef01234567": "katbox v1.2.3 (commit 0123456789ab)\n",
	} {
		var said strings.Builder
		if err := PrintVersion(&said, "katbox", "v1.2.3", revision); err != nil || said.String() != want {
			t.Errorf("revision %q: %q, %v; want %q", revision, said.String(), err, want)
		}
	}
}
