package api

import "time"

// ArchiveWaiting is what a node still has to archive.
type ArchiveWaiting struct {
	// Volumes counts the retained volumes that wait or are being copied, Bytes what they take on the disk, as far as that is known.
	Volumes int   `json:"volumes"`
	Bytes   int64 `json:"bytes,omitempty"`
	// Oldest and Newest are when the first and the last of them were retained, by the node's clock.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}
