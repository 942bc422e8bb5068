//go:build linux

package browser

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const address = "http://127.0.0.1:1234/?token=SECRET&x=%22"

// play puts a program in the place of xdg-open. It says in a file that it then makes how it was started
// and what it found.
func play(t *testing.T) (said string) {
	t.Helper()
	dir := t.TempDir()
	said = filepath.Join(dir, "said")
	script := `#!/bin/sh
{ tr '\0' '\n' </proc/$$/cmdline; stat -c %a "$1" "${1%/*}"; cat "$1"; } >"$SAID.new"
mv "$SAID.new" "$SAID"
`
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SAID", said)
	t.Setenv("DISPLAY", ":0")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	return said
}

// read waits for the file.
func read(t *testing.T, name string) string {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; {
		text, err := os.ReadFile(name)
		if err == nil {
			return string(text)
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTheAddressIsInAPrivateFile(t *testing.T) {
	for _, snap := range []bool{false, true} {
		said := play(t)
		place := os.Getenv("TMPDIR")
		if snap {
			place = os.Getenv("HOME")
			if err := os.Mkdir(filepath.Join(place, "snap"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		remove, err := Open(address)
		if err != nil {
			t.Fatal(err)
		}
		started, page, _ := strings.Cut(read(t, said), "<!doctype html>")
		lines := strings.Split(strings.TrimSpace(started), "\n")
		if strings.Contains(started, "SECRET") || len(lines) != 5 || lines[3] != "600" || lines[4] != "700" {
			t.Errorf("it was started as %q", lines)
		}
		file := lines[2]
		if !strings.HasPrefix(file, place+"/katbox-ui-") {
			t.Errorf("the file is %s", file)
		}
		if !strings.Contains(page, `content="0;url=http://127.0.0.1:1234/?token=SECRET&amp;x=%22"`) || !strings.Contains(page,
			`content="no-referrer"`) {
			t.Errorf("the file has %q", page)
		}
		remove()
		remove()
		if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
			t.Errorf("after the removal: %v", err)
		}
	}
}

func TestWithoutABrowser(t *testing.T) {
	play(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(address); err == nil {
		t.Error("a browser was started")
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	if _, err := Open(address); !errors.Is(err, ErrNoDisplay) {
		t.Errorf("without a display: %v", err)
	}
}
