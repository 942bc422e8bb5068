//go:build linux

package unpack

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asUser runs the test as an ordinary user: root runs it in another process, and gets false.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "unpack")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chown(dir, nobody, nobody))
	self, err := os.Open("/proc/self/exe") // its directory may be closed to others
	must(t, err)
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = dir, append(os.Environ(), "TMPDIR="+dir), []*os.File{self}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("%v: %s", err, out)
	}
	return false
}

// readOnly are directories that their owner may not write once they are complete, as Go's module cache has them.
func readOnly() []tar.Header {
	var entries []tar.Header
	for _, name := range []string{"mod", "mod/a", "mod/a/sub", "mod/b"} {
		d := directory(name)
		d.Mode, d.ModTime = 0o555, before
		f := file(name + "/f")
		f.Mode = 0o444
		entries = append(entries, d, f)
	}
	return append(entries, file("mod/z"), file("last"))
}

// wantReadOnly checks that all is there, and closed.
func wantReadOnly(t *testing.T, dest string) {
	t.Helper()
	for _, name := range []string{"mod/f", "mod/a/f", "mod/a/sub/f", "mod/b/f", "mod/z", "last"} {
		if b, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(b) != "new" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []string{"mod", "mod/a", "mod/a/sub", "mod/b"} {
		if info, err := os.Stat(filepath.Join(dest, name)); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	openAll(dest)
}

// TestReadOnlyDirectoriesAreReplacedInto by an ordinary user, and are read-only again after that, whether it ends well or not.
func TestReadOnlyDirectoriesAreReplacedInto(t *testing.T) {
	if !asUser(t) {
		return
	}
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, readOnly()...)
		dest := t.TempDir()
		o := Options{Dir: dest, Overwrite: true}
		for range 2 {
			_, err := unpackOn(t.Context(), on, bytes.NewReader(whole), o)
			must(t, err)
		}
		for cut := 0; cut < len(whole)-1024; cut += 512 {
			if _, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:cut]), o); err == nil {
				t.Errorf("cut at %d: no error", cut)
			}
			for _, name := range []string{"mod", "mod/a", "mod/a/sub", "mod/b"} {
				if info, err := os.Stat(filepath.Join(dest, name)); err != nil || info.Mode().Perm() != 0o555 {
					t.Errorf("cut at %d: %s: %v, %v", cut, name, info.Mode(), err)
				}
			}
		}
		wantReadOnly(t, dest)
	})
}

// TestReadOnlyDirectoriesAreGoneOnIn by an ordinary user, from any checkpoint.
func TestReadOnlyDirectoriesAreGoneOnIn(t *testing.T) {
	if !asUser(t) {
		return
	}
	eachSystem(t, func(t *testing.T, on system) {
		whole := archive(t, readOnly()...)
		for earlier := 0; earlier < len(whole)-1024; earlier += 512 {
			dest, s := t.TempDir(), saved{}
			if _, err := unpackOn(t.Context(), on, bytes.NewReader(whole[:earlier]), Options{Dir: dest, Save: s.save}); err == nil {
				t.Fatal("no error")
			}
			from := s.Checkpoint
			lost := func(Checkpoint) error { return nil }
			for range 2 {
				// All of it, and nothing is known of that.
				_, err := unpackOn(t.Context(), on, bytes.NewReader(whole[from.Next:]), Options{Dir: dest, Save: lost, From: from})
				must(t, err)
			}
			wantReadOnly(t, dest)
		}
	})
}

// TestOthersReadOnlyDirectory is left as it is, with what would come into it, and the rest is there.
func TestOthersReadOnlyDirectory(t *testing.T) {
	if !asUser(t) {
		return
	}
	dest := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dest, "d"), 0o555))
	_, err := Unpack(t.Context(), bytes.NewReader(naming(t, file("a"), file("d/f"), file("z"))), Options{Dir: dest})
	wantLeftOut(t, dest, err, "d/f")
	if _, err := os.Stat(filepath.Join(dest, "z")); err != nil {
		t.Error(err)
	}
	// Nothing at all can come here, which is another thing than an entry that is left out.
	must(t, os.Chmod(dest, 0o555))
	_, err = Unpack(t.Context(), bytes.NewReader(naming(t, file("b"))), Options{Dir: dest})
	wantError(t, err, os.ErrPermission)
	must(t, os.Chmod(dest, 0o700))
}
