package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/testing/attachtest"
	"github.com/katbox/katbox/internal/testing/roottest"
)

// TestFormatEndedAtSomeWrites ends mkfs at some of its writes, one after the other. What is there then can be mounted
// only if it is complete, and Reformat makes a file system of it.
func TestFormatEndedAtSomeWrites(t *testing.T) {
	roottest.Need(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		roottest.Lacks(t, "strace", err)
	}
	const runs = 8
	formatEnded(t, strace, runs)
}

// TestArrayFormatEndedAtEachWrite ends it at all of them.
func TestArrayFormatEndedAtEachWrite(t *testing.T) {
	attachtest.Need(t)
	const all = 1 << 20
	formatEnded(t, "strace", all)
}

func formatEnded(t *testing.T, strace string, runs int) {
	eachFileSystem(t, func(t *testing.T, fsType string) {
		megabytes := map[string]int{ext4: 16, xfs: small}[fsType]
		mkfs := func(t *testing.T, dev, out string, inject ...string) error {
			const calls = "pwrite64,pwritev,write,fallocate,fsync"
			args := []string{"-f", "-qq", "-o", out, "-e", "trace=" + calls}
			if len(inject) > 0 {
				args = append(args, "-e", "inject="+calls+":"+inject[0])
			}
			args = append(args, "mkfs."+fsType)
			return exec.Command(strace, append(args, mkfsArgs(dev, fsType, false)...)...).Run()
		}
		log := filepath.Join(t.TempDir(), "trace")
		if err := mkfs(t, newDevice(t, megabytes).path, log); err != nil {
			roottest.Lacks(t, "strace", err)
		}
		trace, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		writes := strings.Count(string(trace), "\n")
		if writes < 10 {
			t.Fatalf("mkfs makes %d writes", writes)
		}
		step := max(1, writes/runs)
		found := map[string]int{}
		for n := writes; n > 0; n -= step {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				d := newDevice(t, megabytes)
				_ = mkfs(t, d.path, os.DevNull, fmt.Sprintf("signal=KILL:when=%d", n))
				content, err := quiet.Content(t.Context(), d.path)
				if err != nil && !errors.Is(err, attach.ErrNotOurs) {
					t.Fatal(err)
				}
				found[fmt.Sprintf("%q, %t", content, err == nil)]++
				dir := target(t)
				if quiet.Mount(d.path, dir, fsType, nil, true) == nil {
					mustUnmount(t, dir)
					mustBeClean(t, d, fsType)
				}
				if err := quiet.Reformat(t.Context(), d.path, fsType); err != nil {
					t.Fatal(err)
				}
				mustMount(t, d.path, dir, fsType, false)
				if err := os.WriteFile(filepath.Join(dir, "file"), []byte("data"), 0o600); err != nil {
					t.Error(err)
				}
				mustUnmount(t, dir)
				mustBeClean(t, d, fsType)
			})
		}
		t.Logf("of %d writes; what was found, and how often: %v", writes, found)
	})
}

// mustBeClean checks a file system that is not mounted, all of it.
func mustBeClean(t *testing.T, d device, fsType string) {
	t.Helper()
	command := map[string][]string{ext4: {"e2fsck", "-f", "-n"}, xfs: {"xfs_repair", "-n"}}[fsType]
	if out, err := roottest.Run(append(command, d.path)...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
