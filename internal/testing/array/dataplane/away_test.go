package dataplane_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
	"github.com/katbox/katbox/internal/testing/attachtest"
)

func TestMain(m *testing.M) { attachtest.Main(m) }

// both has a writer on a volume of each protocol.
func both(t *testing.T, a *attachtest.Array) (writers []*attachtest.Writer, end func()) {
	t.Helper()
	node := attachtest.ThisNode(t)
	files := mountNFS(t, a.Attach(t, a.Create(t, "files", 1, false), node, false))
	at := a.Attach(t, a.Create(t, "disk", 1, true), node, false)
	s := login(t, a, node, at)
	device := s.scan(t, at.LUN)
	attachtest.Run(t, "mke2fs", "-q", "-F", "-t", "ext4", device)
	disk := mountDisk(t, device)
	writers = []*attachtest.Writer{
		attachtest.StartWriter(t, filepath.Join(files, "file")), attachtest.StartWriter(t, filepath.Join(disk, "file")),
	}
	return writers, func() {
		t.Helper()
		for _, w := range writers {
			w.End(t)
		}
		for _, dir := range []string{files, disk} {
			if err := unix.Unmount(dir, 0); err != nil {
				t.Errorf("unmount: %v", err)
			}
		}
		remove(t, device)
		s.logout(t)
	}
}

// TestArrayAway: an array that is away for a while stops writers, and they go on without an error when it is
// back.
func TestArrayAway(t *testing.T) {
	a := attachtest.NewArray(t)
	writers, end := both(t, a)
	for _, how := range []dataplane.Away{dataplane.Network, dataplane.Down} {
		for _, w := range writers {
			w.More(t)
		}
		a.Leave(t, how)
		// A write that was under way when the array left may still be counted.
		var stood []int64
		for _, w := range writers {
			stood = append(stood, w.Blocks())
		}
		attachtest.Eventually(t, "the session is down", func() bool { return sessionState(t) == "FAILED" })
		for i, w := range writers {
			if n := w.Blocks(); n > stood[i]+1 {
				t.Errorf("%d blocks were written while the array was away (%s)", n-stood[i], how)
			}
		}
		a.Return(t)
		for _, w := range writers {
			w.More(t)
		}
	}
	end()
}

// sessionState is the word of the only session.
func sessionState(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/sys/class/iscsi_session/session*/state")
	if len(found) != 1 {
		t.Fatalf("there are %d sessions", len(found))
	}
	return read(t, found[0])
}

// TestArrayPortalMoves: after a switch of controllers the other address answers; the old one does so only
// where both serve.
func TestArrayPortalMoves(t *testing.T) {
	a := attachtest.NewArray(t)
	node := attachtest.ThisNode(t)
	v := a.Create(t, "files", 1, false)
	before := a.Attach(t, v, node, false)
	first := mountNFS(t, before)
	kept := fill(t, filepath.Join(first, "file"), 10)
	if err := a.Change(func(set *fakevpsa.Settings) { set.BothPortals = true }); err != nil {
		t.Fatal(err)
	}
	if err := a.SwitchController(); err != nil {
		t.Fatal(err)
	}
	after := a.Attach(t, v, node, false)
	if after.Export == before.Export {
		t.Fatalf("the export is %s before and after", after.Export)
	}
	second := mountNFS(t, after)
	same(t, filepath.Join(second, "file"), kept)
	fill(t, filepath.Join(first, "other"), 10)
	for _, dir := range []string{first, second} {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Change(func(set *fakevpsa.Settings) { set.BothPortals = false }); err != nil {
		t.Fatal(err)
	}
	out := attachtest.Run(t, "ip", "-oneline", "address", "show", "dev", "lo")
	if !addressOf(out, after.Export) || addressOf(out, before.Export) {
		t.Errorf("the addresses are %s", out)
	}
	mountNFS(t, after)
}

// addressOf reports whether the address of an export is in a list of ip.
func addressOf(list, export string) bool {
	server, _, _ := strings.Cut(export, ":")
	return strings.Contains(list, " "+server+"/32 ")
}
