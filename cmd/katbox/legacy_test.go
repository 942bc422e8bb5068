package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// legacyDB writes a database like the archived Katbox.
func legacyDB(t testing.TB, path string, buckets map[string]map[string]string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for name, values := range buckets {
			bucket, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			for key, value := range values {
				if err := bucket.Put([]byte(key), []byte(value)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeFromTheArchivedKatbox: a running pod keeps its volume, a retained volume keeps
// its deadline, and the data of an entry that cannot be parsed is kept.
func TestUpgradeFromTheArchivedKatbox(t *testing.T) {
	d := newDaemon(t, "--afterlifespan", "1h")
	const oldDir = "/csi-data-dir" // where the old container saw the working directory
	outside := filepath.Join(d.dir, "outside", "precious")
	running, ended, broken := volumeID(1), volumeID(2), volumeID(3)
	for _, dir := range []string{d.data(testPod, running), d.data("ended", ended), d.data("broken", broken), outside} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "marker"), []byte(filepath.Base(filepath.Dir(dir))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(d.target(testPod), 0o750); err != nil {
		t.Fatal(err)
	}
	// The old daemon's container is gone; its mounts are not.
	if err := syscall.Mount(d.data(testPod, running), d.target(testPod), "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	deleted, lifespan := time.Now().Add(-time.Hour), time.Hour+3*time.Second
	deadline := deleted.Add(lifespan)
	legacyDB(t, filepath.Join(d.workdir(), legacyFile), map[string]map[string]string{
		"volumes": {running: fmt.Sprintf(
			`{"name":"ephemeral-%s","id":%q,"podUUID":%q,"size":1099511627776,"path":"%s/%s/%s","accessType":0,"ephemeral":true}`,
			running, running, testPod, oldDir, testPod, running)},
		"deletedVolumes": {
			ended: fmt.Sprintf(`{"deleteTime":%q,"lifespan":%d,"path":"%s/ended/%s"}`, deleted.Format(time.RFC3339Nano),
				lifespan, oldDir, ended),
			broken:     `{"deleteTime":"yesterday`,
			"precious": fmt.Sprintf(`{"deleteTime":"2020-01-01T00:00:00Z","lifespan":1,"path":%q}`, outside),
		},
	})
	d.start()
	d.wantMarker(testPod, running, "of a running pod")
	if gone := !exists(d.data("ended", ended)); gone && time.Now().Before(deadline) {
		t.Error("a retained volume was deleted before its old deadline")
	}
	d.eventually("deleted at its old deadline", d.gone("ended", ended))
	if time.Now().Before(deadline) {
		t.Error("a retained volume was deleted before its old deadline")
	}
	d.wantMarker("broken", broken, "with an entry that cannot be parsed")
	if !exists(filepath.Join(outside, "marker")) {
		t.Error("something outside of the working directory was deleted")
	}
	if !d.mounted(d.target(testPod)) {
		t.Error("a running pod lost its mount")
	}
	d.unpublish(testPod, running)
	if d.mounted(d.target(testPod)) {
		t.Error("still mounted")
	}
	d.wantMarker(testPod, running, "retained")

	// Only once: the old database is history now.
	d.crash()
	d.wantMarker(testPod, running, "retained, after a restart")
}
