package index

import (
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// diskKey is a disk among those of all pools: two arrays may have disks of one name.
type diskKey struct{ pool, wwid string }

// ClaimDisk returns the volume that has a disk.
func (x *Index) ClaimDisk(m *poolmessages.ClaimDisk) string {
	key := diskKey{x.word(m.Pool), m.WWID}
	if x.volumes[x.disks[key]] == nil { // or the one that asked for it is gone
		x.disks[key] = m.Volume
	}
	return x.disks[key]
}
