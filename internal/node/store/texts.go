package store

import "github.com/katbox/katbox/internal/model/volume"

// Who released a volume, and why, may be in its record here alone: the node keeps no more than a few thousand of
// such texts in memory. So the record of a released volume that says neither leaves what is there as it is, and a
// tombstone says what the record has said.

// lacksTexts reports whether a hold is one of those.
func lacksTexts(h volume.Hold) bool { return h.Kind == volume.Released && h.By == "" && h.Why == "" }

// fillTexts encodes a change anew that lacks the texts which the record has that is there. One that cannot be
// read has none.
func (t transaction) fillTexts(c volume.Change, m moment, value, stone *[]byte) error {
	ofRecord := c.Record != nil && lacksTexts(c.Record.Hold)
	ofTombstone := *stone != nil && lacksTexts(c.Tombstone.Record.Hold)
	if !ofRecord && !ofTombstone {
		return nil
	}
	key := []byte(c.ID)
	before, err := decodeValue(key, t.tx.Bucket(volumesBucket).Get(key), m)
	if err != nil || before.Hold.Kind != volume.Released || lacksTexts(before.Hold) {
		return nil //nolint:nilerr // see above
	}
	texts := before.Hold
	if ofRecord {
		filled := *c.Record
		filled.Hold.By, filled.Hold.Why = texts.By, texts.Why
		*value, err = encodeValue(filled, m)
		return err
	}
	filled := *c.Tombstone
	filled.Record.Hold.By, filled.Record.Hold.Why = texts.By, texts.Why
	if filled.Reason == volume.ForReleased && filled.By == "" && filled.Why == "" {
		filled.By, filled.Why = texts.By, texts.Why
	}
	*stone, err = encodeTombstone(c.ID, filled, m)
	return err
}
