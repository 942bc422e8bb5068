package store

import "go.etcd.io/bbolt"

// transaction is how the records are changed: a compaction that runs hears of it.
type transaction struct {
	tx         *bbolt.Tx
	compaction *compaction // nil if none runs
}

func (t transaction) get(bucket, key []byte) []byte { return t.tx.Bucket(bucket).Get(key) }

func (t transaction) put(bucket, key, value []byte) error {
	t.compaction.changes(bucket, key)
	return t.tx.Bucket(bucket).Put(key, value)
}

func (t transaction) delete(bucket, key []byte) error {
	t.compaction.changes(bucket, key)
	return t.tx.Bucket(bucket).Delete(key)
}
