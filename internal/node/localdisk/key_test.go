package localdisk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// TestKeyOfAPool: a pool has one key for good, and one that an earlier version has made gets one.
func TestKeyOfAPool(t *testing.T) {
	p := newPool(t, imageOnExt4)
	file := filepath.Join(p.path, poolFile)
	first := p.Describe().Key
	if !first.Valid() {
		t.Fatalf("a new pool has no key but %q", string(first))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", poolFile, info.Mode(), err)
	}
	p.reopen()
	if p.Describe().Key != first {
		t.Error("it has another key after a restart")
	}

	rewrite(t, file, func(all map[string]any) { delete(all, "key") })
	p.reopen()
	second := p.Describe().Key
	if !second.Valid() || second == first {
		t.Errorf("a pool of an earlier version has the key %q", string(second))
	}
	p.reopen()
	if p.Describe().Key != second {
		t.Error("the new key was not kept")
	}

	must(t, p.Close())
	rewrite(t, file, func(all map[string]any) { all["key"] = "guess" })
	if _, err := Open(p.path, Config{Log: logr.Discard()}); err == nil || !strings.Contains(err.Error(), "has a key that is none") {
		t.Errorf("a key that is none: %v", err)
	}
	rewrite(t, file, func(all map[string]any) { delete(all, "key") })
	p.open()
}

// TestKeyNeedsNoRoomToOpen: a pool of an earlier version opens on a full disk, without a key.
func TestKeyNeedsNoRoomToOpen(t *testing.T) {
	p := newPool(t, imageOnExt4)
	file := filepath.Join(p.path, poolFile)
	rewrite(t, file, func(all map[string]any) { delete(all, "key") })
	fill(t, p.Pool)
	p.reopen()
	if key := p.Describe().Key; key != "" {
		content, err := os.ReadFile(file)
		must(t, err)
		if !strings.Contains(string(content), string(key)) {
			t.Error("a key is told that no file has")
		}
	}
	must(t, os.Remove(filepath.Join(p.path, "stranger")))
	p.reopen()
	if !p.Describe().Key.Valid() {
		t.Error("it has no key, with room")
	}
}

// rewrite changes what pool.json says.
func rewrite(t *testing.T, file string, change func(map[string]any)) {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	all := map[string]any{}
	must(t, json.Unmarshal(content, &all))
	change(all)
	content, err = json.Marshal(all)
	must(t, err)
	must(t, os.WriteFile(file, content, 0o600))
}
