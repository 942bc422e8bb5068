package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/soak/internal/history"
)

func TestMain(m *testing.M) {
	becomeContainer()
	os.Exit(m.Run())
}

// broken plays a short run with something that is broken on purpose, and returns what was found.
func broken(t *testing.T, o options) string {
	t.Helper()
	if os.Getenv("KATBOX_ARRAY_TESTS") != "1" {
		t.Skip("this machine lacks the kernel's NFS and iSCSI: run it with make guest SUITE=arrays")
	}
	o.daemon, o.controller, o.fakearray, o.nodeAddress = "./katbox", "./katbox-controller", "./fakearray", "10.255.0.1"
	o.dir = filepath.Join(os.Getenv("KATBOX_ARRAY_DIR"), t.Name())
	o.seed, o.length, o.parallel = 1, 5*time.Second, 2
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := play(t.Context(), o, &out)
	t.Logf("%s", &out)
	if err == nil {
		t.Fatal("nothing was found")
	}
	return err.Error()
}

// TestArrayCorruptionIsFound: bytes of a volume are others after it was detached.
func TestArrayCorruptionIsFound(t *testing.T) {
	found := broken(t, options{serial: 2, kinds: []string{block}, meddle: func(dir, id string) error {
		images, err := filepath.Glob(filepath.Join(dir, id+"*"))
		if err != nil || len(images) != 1 {
			t.Errorf("the images of %s: %q, %v", id, images, err)
		}
		for _, image := range images {
			f, err := os.OpenFile(image, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("other"), 1<<20); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
		}
		return nil
	}})
	if !strings.Contains(found, string(history.PublishedData)) {
		t.Error("the corruption was not found")
	}
}

// TestArrayLeakIsFound: the array never hears that the node's server record is to be deleted.
func TestArrayLeakIsFound(t *testing.T) {
	found := broken(t, options{serial: 3, kinds: []string{nfs}, between: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/api/servers/") {
				_, _ = io.WriteString(w, `{"response":{"status":0}}`)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	if !strings.Contains(found, "server record") {
		t.Error("the server record was not found")
	}
}
