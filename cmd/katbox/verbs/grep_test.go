package verbs

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// TestGrep: the same verb as that of kubectl katbox, by names and IDs of the node.
func TestGrep(t *testing.T) {
	n := newNode(t)
	write(t, filepath.Join(n.add(1, "etl/nightly/"+volume.LogsName, time.Hour), "main/0.log"),
		"2025-11-30T12:00:01Z stdout F CUDA error\n2025-11-30T12:00:02Z stdout F fine\n")
	write(t, n.add(2, "etl/nightly/scratch", 2*time.Hour)+"/a\nb", "fine\n\tCUDA \x1b[2Jerror\r\n")
	write(t, n.add(3, "ci/web/scratch", 3*time.Hour)+"/log", "CUDA error\n")
	logs, file := "etl/nightly/"+volume.LogsName+":main/0.log:1:CUDA error\n", "etl/nightly/scratch::a%0Ab:2:\tCUDA \x1b[2Jerror\n"
	mustPrint(t, logs+file+"ci/web/scratch:log:1:CUDA error\n", "grep", "CUDA")
	mustPrint(t, logs+file, "grep", "CUDA", "etl")
	mustPrint(t, logs+file, "grep", "CUDA", "etl/nightly")
	mustPrint(t, file, "grep", "CUDA", "etl/nightly/scratch")
	mustPrint(t, file, "grep", "CUDA", id(2))
	mustPrint(t, logs, "grep", "-i", "cuda", "--since", "90m")
	mustPrint(t, "2 volumes since 2025-11-30T12:00:01Z, 2 lines, the first in etl/nightly/"+volume.LogsName+":main/0.log:1\n    CUDA error\n",
		"grep", "-g", "^CUDA error")
	if out, code := onTerminal(t, "", "grep", "CUDA", "etl/nightly/scratch"); code != 0 ||
		out != `etl/nightly/scratch::a%0Ab:2:`+"\t"+`CUDA \x1b[2Jerror`+"\r\n" {
		t.Errorf("on a terminal: code %d, %q", code, out)
	}
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"nothing":           {1, "nothing was found in 3 files of 3 volumes"},
		"CUDA etl/other/x":  {2, "no retained volume"},
		"CUDA etl/nightly:": {2, "whole volumes are searched"},
		"[":                 {2, "no regular expression"},
	} {
		got := katbox(t, append([]string{"grep"}, strings.Fields(args)...)...)
		if got.code != want.code || !strings.Contains(got.stderr, want.text) {
			t.Errorf("%s: code %d, %q, want %d %q", args, got.code, got.stderr, want.code, want.text)
		}
	}
}
