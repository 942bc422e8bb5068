package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// archive is an archive of entries, of which regular files contain "new".
func archive(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = 3
		}
		must(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte("new"))
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }

func directory(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }

func symlink(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}
}

// place is a directory with the two directories outside and dest, both with something in them.
func place(t testing.TB) (outside, dest string) {
	t.Helper()
	base := t.TempDir()
	outside, dest = filepath.Join(base, "outside"), filepath.Join(base, "dest")
	must(t, os.Mkdir(outside, 0o755))
	must(t, os.Mkdir(dest, 0o755))
	must(t, os.Mkdir(filepath.Join(outside, "dir"), 0o700))
	write(t, filepath.Join(outside, "file"), "old")
	write(t, filepath.Join(dest, "existing"), "old")
	for name, to := range map[string]string{"to-outside": outside, "to-file": "../outside/file", "to-existing": "existing"} {
		if err := os.Symlink(to, filepath.Join(dest, name)); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
	}
	return outside, dest
}

// needsSymlinks skips a test of Windows where the user may not make symbolic links, if one of the
// archive's entries is one, or meets one that [place] makes.
func needsSymlinks(t testing.TB, entries ...tar.Header) {
	t.Helper()
	for _, e := range entries {
		if e.Typeflag != tar.TypeSymlink && !strings.HasPrefix(e.Name, "to-") && !strings.HasPrefix(e.Linkname, "to-") {
			continue
		}
		made := filepath.Join(t.TempDir(), "link")
		err := os.Symlink("x", made)
		if err == nil {
			_, err = os.Readlink(made)
		}
		if err != nil && runtime.GOOS == "windows" {
			t.Skipf("this user may not make symbolic links: %v", err)
		}
	}
}

// eachSystem runs a test on each of the systems.
func eachSystem(t *testing.T, f func(t *testing.T, on system)) {
	t.Helper()
	for name, on := range systems {
		t.Run(name, func(t *testing.T) { f(t, on) })
	}
}

// state describes everything below a directory, and the directory.
func state(t testing.TB, dir string) string {
	t.Helper()
	text := ""
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		must(t, err)
		text += fmt.Sprintf("%s %v", path, info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			must(t, err)
			text += fmt.Sprintf(" %v %d links %q", info.ModTime(), links(info), b)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			must(t, err)
			text += " " + target
		default:
			text += " " + info.ModTime().String()
		}
		text += "\n"
		return nil
	}))
	return text
}
