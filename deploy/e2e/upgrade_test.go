//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// testUpgrade: the archived Katbox leaves mounts of running pods, data directories and
// a database of its own. They are made of what ours left: the mounts and the
// directories are the same, its records are taken away, and the old database is
// written in their place.
func (c *cluster) testUpgrade() {
	running := c.startWriter("from-the-archived")
	ended := c.succeeds(pod{Name: "of-the-archived", Scripts: []string{"echo kept > /scratch/file"}})
	expires := c.succeeds(pod{Name: "of-the-archived-too", Scripts: []string{"echo expires > /scratch/file"}})
	all := c.volumes()
	c.remove()
	c.forget()

	// The lifespans are not ours, which is 12 hours.
	deadline := time.Now().Add(30 * time.Second)
	c.archivedDatabase(
		map[string]string{running.uid: c.id(running.uid)},
		map[string]string{ended: c.id(ended), expires: c.id(expires)},
		map[string]time.Time{ended: time.Now().Add(time.Hour), expires: deadline},
	)
	expiring := filepath.Dir(c.file(expires, "file"))
	c.deploy()
	running.wantUnaffected("after the upgrade")
	c.want(c.file(ended, "file"), "kept\n")
	if _, err := os.Stat(expiring); err != nil && time.Now().Before(deadline) {
		c.t.Errorf("a retained volume went before its deadline: %v", err)
	}
	c.end(running.name)
	running.wantRetained()
	c.eventually("a retained volume goes at its old deadline", func() error {
		if _, err := os.Stat(expiring); err == nil {
			return fmt.Errorf("%s is still there", expiring)
		}
		return nil
	})
	if time.Now().Before(deadline) {
		c.t.Error("a retained volume went before its deadline")
	}
	c.want(c.file(ended, "file"), "kept\n")
	if now := c.volumes(); now != all-1 {
		c.t.Errorf("%d volumes after the upgrade, %d before: all but one stay", now, all)
	}
	c.wantNoMounts()
}

// id is the ID of the only volume of a pod.
func (c *cluster) id(uid string) string {
	c.t.Helper()
	return filepath.Base(filepath.Dir(c.file(uid, "x")))
}

// forget takes Katbox's own records away.
func (c *cluster) forget() {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.workdir(), ".*"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			c.t.Fatal(err)
		}
	}
}

// archivedDatabase writes what the archived Katbox keeps: the volumes of running
// pods, and those that it will delete. Both are maps from a pod's UID to a volume's ID.
func (c *cluster) archivedDatabase(running, retained map[string]string, deadlines map[string]time.Time) {
	c.t.Helper()
	db, err := bbolt.Open(filepath.Join(c.workdir(), "deletedVolumes.db"), 0o600, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	const lifespan = 2 * time.Hour
	path := func(uid, id string) string { return filepath.Join("/csi-data-dir", uid, id) }
	err = db.Update(func(tx *bbolt.Tx) error {
		volumes, err := tx.CreateBucket([]byte("volumes"))
		if err != nil {
			return err
		}
		for uid, id := range running {
			if err := put(volumes, id, map[string]any{
				"name": "ephemeral-" + id, "id": id, "podUUID": uid, "size": int64(1) << 40, "path": path(uid, id), "accessType": 0, "ephemeral": true,
			}); err != nil {
				return err
			}
		}
		deleted, err := tx.CreateBucket([]byte("deletedVolumes"))
		if err != nil {
			return err
		}
		for uid, id := range retained {
			if err := put(deleted, id, map[string]any{
				"deleteTime": deadlines[uid].Add(-lifespan), "lifespan": lifespan, "path": path(uid, id),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		c.t.Fatal(err)
	}
}

func put(bucket *bbolt.Bucket, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return bucket.Put([]byte(key), text)
}
