package main

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/program"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/node/csi/inline"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/policy"
)

// FuzzParse looks for a command line that is accepted though the daemon cannot work with
// it, or that is refused without the name of a flag. Arguments end in NUL, which none can
// contain.
func FuzzParse(f *testing.F) {
	for _, args := range []string{
		"--nodeid n", "--nodeid=n --headroom 0 --afterlifespan 1h30m", "--nodeid n --workdir /a/../b --kubelet-dir /c/", "--version", "-h",
	} {
		f.Add(strings.ReplaceAll(args, " ", "\x00"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\x00")
		o, err := parse(args, io.Discard)
		switch {
		case errors.Is(err, pflag.ErrHelp) || err == nil && o.showVersion:
		case err != nil:
			checkRefusal(t, args, err)
		default:
			checkOptions(t, args, o)
		}
	})
}

func checkRefusal(t *testing.T, args []string, err error) {
	t.Helper()
	var stderr strings.Builder
	if code := program.ExitCode(programName, err, &stderr); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%q: exit code %d, stderr %q, want 1 and one line", args, code, stderr.String())
	}
	text := err.Error()
	if slices.ContainsFunc([]string{"unexpected argument", "unknown flag", "unknown shorthand flag", "bad flag syntax"},
		func(s string) bool { return strings.Contains(text, s) }) {
		return
	}
	// Only a given flag can be wrong, or --nodeid missing.
	if strings.Contains(text, "--nodeid is missing") {
		return
	}
	named := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' })
	if !slices.ContainsFunc(args, func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return strings.HasPrefix(flag, "--") && slices.Contains(named, flag)
	}) {
		t.Errorf("%q: %q names none of the flags", args, text)
	}
}

var anyMetrics = metrics.New("", "")

func checkOptions(t *testing.T, args []string, o options) {
	t.Helper()
	pods := kubelet.PodsDir(o.kubeletDir)
	workdir := filepath.Clean(o.workdir)
	overlap := workdir == pods || strings.HasPrefix(workdir+"/", strings.TrimSuffix(pods, "/")+"/") || strings.HasPrefix(pods+"/", workdir+"/")
	if !filepath.IsAbs(workdir) || workdir == "/" || overlap {
		t.Errorf("%q: working directory %q with the pods directory %q", args, o.workdir, pods)
	}
	// The kernel follows the path as it is; messages and records contain the clean path.
	// With a symbolic link in front of ".." these are two directories.
	if slices.Contains(strings.Split(o.workdir, "/"), "..") {
		t.Errorf("%q: working directory %q", args, o.workdir)
	}
	if o.afterLifespan < 0 || o.pruneInterval <= 0 || o.orphanGrace <= 0 || o.maxVolumes < 0 || !(o.headroom >= 0 && o.headroom <= 1) {
		t.Errorf("%q: %+v", args, o)
	}
	if path, err := socket.Path(o.endpoint); err != nil || path == "" {
		t.Errorf("%q: socket %q, %v", args, path, err)
	}
	promised, err := policy.New(o.bounds())
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	_, err = inline.New(inline.Config{
		Name: o.driverName, NodeID: o.nodeID, KubeletDir: o.kubeletDir, MaxVolumes: o.maxVolumes,
		Volumes: struct{ inline.Volumes }{}, Terms: promised.Terms, Metrics: anyMetrics,
	})
	if err != nil || o.kubeletDir != filepath.Clean(o.kubeletDir) {
		t.Errorf("%q: kubelet directory %q, %v", args, o.kubeletDir, err)
	}
}
