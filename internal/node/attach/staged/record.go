package staged

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/katbox/katbox/internal/model/pools"
)

// Record is what a node keeps about a volume that is staged.
type Record struct {
	// Volume is the volume's ID.
	Volume string
	// Path is the staging target path.
	Path string
	// Block: pods get a block device, else a file system.
	Block    bool
	FSType   string
	ReadOnly bool
	// Options are the mount options.
	Options []string
	// Attachment is how the node reaches the volume.
	Attachment pools.Attachment
	// Called is the export that the calls name, if it has got another name since; empty where that is the attachment's.
	Called string
	// Serial is the serial number or the WWID by which the node knows the device; empty for NFS.
	Serial string
	// Formatting: a file system is being made on the device. What a crash left of it may be made anew,
	// because the volume was proven empty before and was not used since.
	Formatting bool
}

// version is that of the format of the files.
const version = 1

// record is a Record as the file has it.
type record struct {
	Version    int        `json:"version"`
	Volume     string     `json:"volume"`
	Path       string     `json:"path,omitempty"`
	Block      bool       `json:"block,omitempty"`
	FSType     string     `json:"fsType,omitempty"`
	ReadOnly   bool       `json:"readOnly,omitempty"`
	Options    []string   `json:"options,omitempty"`
	Attachment attachment `json:"attachment,omitzero"`
	Called     string     `json:"called,omitempty"`
	Serial     string     `json:"serial,omitempty"`
	Formatting bool       `json:"formatting,omitempty"`
}

type attachment struct {
	Volume     string         `json:"volume,omitempty"`
	Node       string         `json:"node,omitempty"`
	Protocol   pools.Protocol `json:"protocol,omitempty"`
	ReadOnly   bool           `json:"readOnly,omitempty"`
	Export     string         `json:"export,omitempty"`
	Target     string         `json:"target,omitempty"`
	Portal     string         `json:"portal,omitempty"`
	Serial     string         `json:"serial,omitempty"`
	WWID       string         `json:"wwid,omitempty"`
	LUN        int            `json:"lun,omitempty"`
	CHAPSecret string         `json:"chapSecret,omitempty"`
	FSType     string         `json:"fsType,omitempty"`
}

func encode(r Record) ([]byte, error) {
	content, err := json.Marshal(record{
		Version: version, Volume: r.Volume, Path: r.Path, Block: r.Block, FSType: r.FSType, ReadOnly: r.ReadOnly,
		Options: r.Options, Attachment: attachment(r.Attachment), Serial: r.Serial, Called: r.Called, Formatting: r.Formatting,
	})
	return append(content, '\n'), err
}

var (
	errDamaged = errors.New("damaged")
	errLater   = errors.New("written by a later version of Katbox")
)

func decode(content []byte) (Record, error) {
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	switch {
	case r.Version > version:
		return Record{}, fmt.Errorf("%w: its format is version %d, this one knows %d", errLater, r.Version, version)
	case r.Version < 1:
		return Record{}, fmt.Errorf("%w: it has no version", errDamaged)
	}
	return Record{
		Volume: r.Volume, Path: r.Path, Block: r.Block, FSType: r.FSType, ReadOnly: r.ReadOnly, Options: r.Options,
		Attachment: pools.Attachment(r.Attachment), Serial: r.Serial, Called: r.Called, Formatting: r.Formatting,
	}, nil
}
