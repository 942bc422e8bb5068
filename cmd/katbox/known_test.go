package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/lib/kernel"
)

const (
	knownOne   = "11111111-1111-4111-8111-111111111111"
	knownOther = "22222222-2222-4222-8222-222222222222"
)

// TestKnownPools survive the daemon, as long as their directories are given.
func TestKnownPools(t *testing.T) {
	file := filepath.Join(t.TempDir(), "local", knownName)
	open := func(given ...string) *known {
		t.Helper()
		k, err := openKnown(file, given)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := open("/a", "/b")
	must(t, k.remember("/a", knownOne))
	must(t, k.remember("/a", knownOne))
	must(t, k.remember("/b", knownOther))
	if k = open("/a", "/b"); k.at("/a") != knownOne || k.at("/b") != knownOther || k.at("/c") != "" {
		t.Errorf("known %v", k.pools)
	}
	if open("/a"); open("/a", "/b").at("/b") != "" {
		t.Error("a directory that was given no more is known")
	}
	must(t, os.WriteFile(file, []byte("{"), 0o600))
	if _, err := openKnown(file, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestKnownPoolsSurviveACrash: whatever step is the last one, the next daemon knows either pool or both.
func TestKnownPoolsSurviveACrash(t *testing.T) {
	for step := range 20 {
		file := filepath.Join(t.TempDir(), knownName)
		k, err := openKnown(file, []string{"/a", "/b"})
		must(t, err)
		must(t, k.remember("/a", knownOne))
		crashed := errors.New("crashed")
		calls := 0
		t.Run("", func(t *testing.T) {
			kernel.Inject(t, func(string, string) error {
				if calls++; calls > step {
					return crashed
				}
				return nil
			})
			err = k.remember("/b", knownOther)
		})
		if err == nil {
			if step < 4 {
				t.Errorf("there were only %d steps", step)
			}
			return
		}
		if !errors.Is(err, crashed) {
			t.Fatal(err)
		}
		if k.at("/b") != "" {
			t.Error("it is known, and not durable")
		}
		again, err := openKnown(file, []string{"/a", "/b"})
		must(t, err)
		if b := again.at("/b"); again.at("/a") != knownOne || b != "" && b != knownOther {
			t.Errorf("after step %d: %v", step, again.pools)
		}
		must(t, again.remember("/b", knownOther))
	}
	t.Error("it has no end")
}
