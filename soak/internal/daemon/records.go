package daemon

import (
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// recordsPatience is how long it takes at most until the database of a driver that has ended is free.
const recordsPatience = 10 * time.Second

// Records is described at [Driver].
func (b *Binary) Records() (int, error) {
	db, err := bbolt.Open(b.config.Records, 0o600, &bbolt.Options{ReadOnly: true, Timeout: recordsPatience})
	if err != nil {
		return 0, fmt.Errorf("the daemon's records in %s: %w", b.config.Records, err)
	}
	defer db.Close()
	n := 0
	err = db.View(func(tx *bbolt.Tx) error {
		volumes := tx.Bucket([]byte("volumes"))
		if volumes == nil {
			return fmt.Errorf("the daemon's records in %s: there is no bucket called volumes", b.config.Records)
		}
		return volumes.ForEach(func(_, _ []byte) error {
			n++
			return nil
		})
	})
	return n, err
}
