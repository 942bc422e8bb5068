package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	const most = 10000
	for _, size := range []int{0, 1, 4095, 4096, 4097, 8192, 9999, 10000, 10001, 20000} {
		path := filepath.Join(dir, fmt.Sprint(size))
		content := bytes.Repeat([]byte("abc"), size/3+1)[:size]
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(unix.AT_FDCWD, path, 0, most); err != nil || !bytes.Equal(got, content[:min(size, most)]) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	if got, err := ReadFile(unix.AT_FDCWD, filepath.Join(dir, "4096"), 0, 5); err != nil || string(got) != "abcab" {
		t.Errorf("the first five bytes: %q, %v", got, err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), dir} {
		if got, err := ReadFile(unix.AT_FDCWD, path, 0, most); err == nil {
			t.Errorf("%s: %q", path, got)
		}
	}
	in, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got, err := ReadFile(int(in.Fd()), "1", unix.O_NOFOLLOW, most); err != nil || string(got) != "a" {
		t.Errorf("in a directory: %q, %v", got, err)
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	if names, err := Names(dir); err != nil || len(names) > 0 {
		t.Errorf("an empty directory: %q, %v", names, err)
	}
	var want []string
	for n := range 1000 { // more than one call returns
		want = append(want, fmt.Sprintf("name-%04d", n))
		if err := os.Mkdir(filepath.Join(dir, want[n]), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := Names(dir); err != nil || !slices.Equal(names, want) {
		t.Errorf("%d names, %v", len(names), err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), os.Args[0]} {
		if names, err := Names(path); err == nil {
			t.Errorf("%s: %q", path, names)
		}
	}
}

func TestReadlink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("../to", path); err != nil {
		t.Fatal(err)
	}
	if to, err := Readlink(path); err != nil || to != "../to" {
		t.Errorf("%q, %v", to, err)
	}
	if to, err := Readlink(filepath.Dir(path)); err == nil {
		t.Errorf("of a directory: %q", to)
	}
}
