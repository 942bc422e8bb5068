package local

import "time"

// Backend is how a pool keeps volumes, as --local-pool names it.
type Backend string

// The backends that the machine's usual file systems have.
const (
	Image        Backend = "image"
	ProjectQuota Backend = "projectQuota"
)

// pool, volume and snapshot are what the node says of its pools.
type pool struct {
	UUID        string `json:"uuid"`
	Class       string `json:"class"`
	Path        string `json:"path"`
	Copies      bool   `json:"copies"`
	Total       int64  `json:"total"`
	Provisioned int64  `json:"provisioned"`
	Failed      string `json:"failed"`
}

// found is a volume or a snapshot; of is the volume that a snapshot is of.
type found struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	Comment string `json:"comment"`
	Of      string `json:"volume"`
	Ready   bool   `json:"ready"`
	InUse   bool   `json:"inUse"`
}

type list[T any] struct {
	Items []T `json:"items"`
}

type source struct {
	Snapshot string `json:"snapshot,omitempty"`
	Volume   string `json:"volume,omitempty"`
}

// newVolume, newSnapshot, newSize and newComment are the bodies of changes.
type (
	newVolume struct {
		Name   string `json:"name"`
		Size   int64  `json:"size"`
		FSType string `json:"fsType,omitempty"`
		Source source `json:"source,omitzero"`
	}
	newSnapshot struct {
		Name   string `json:"name"`
		Volume string `json:"volume"`
	}
	newSize struct {
		Bytes int64 `json:"bytes"`
	}
	newComment struct {
		Comment string `json:"comment"`
	}
)

// retained is the comment of a volume whose claim is gone. Without one a volume has a claim.
func retained(since time.Time) string {
	at := since.UTC().Format(time.RFC3339)
	return `{"cluster":"soak","retained":{"since":"` + at + `","until":"` + since.Add(time.Hour).UTC().Format(time.RFC3339) + `"}}`
}
