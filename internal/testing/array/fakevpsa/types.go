package fakevpsa

import (
	"time"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
)

// Pool is a pool of disks.
type Pool struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Capacity is its size in GiB. Limit bounds what can be promised to volumes, in GiB; 0 does not.
	Capacity int64 `json:"capacity"`
	Limit    int64 `json:"limit,omitempty"`
	// Used is what is in use besides the volumes, in MiB.
	Used int64 `json:"used,omitempty"`
	// Mode is normal, alert, protected or emergency; the pool does not show it when it is empty. In
	// the last two nothing can be created or expanded.
	Mode string `json:"mode,omitempty"`
	// Status is the array's word, normally "Normal".
	Status string `json:"status"`
	// Protection is what update_protection has set.
	Protection map[string]string `json:"protection,omitempty"`

	// Sums over the volumes, and those in the recycle bin: in GiB and in MiB.
	provisioned, allocated int64
}

func (p *Pool) id() string    { return p.ID }
func (p *Pool) label() string { return p.Name }

// Volume is a volume.
type Volume struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Group   string `json:"group"`
	Pool    string `json:"pool"`
	Comment string `json:"comment,omitempty"`
	// Size is in GiB; Allocated, what is in use of it, in MiB.
	Size      int64 `json:"size"`
	Allocated int64 `json:"allocated"`
	Block     bool  `json:"block"`
	// Export is the path of a file system, such as /export/x.
	Export string `json:"export,omitempty"`
	// Status replaces Available and In-use, up to the request with the number Until; for ever when that
	// is 0.
	Status string `json:"status,omitempty"`
	Until  int64  `json:"until,omitempty"`
	// Source is the volume or the snapshot that it was cloned from.
	Source string `json:"source,omitempty"`
	// Snapshots counts them.
	Snapshots int `json:"snapshots,omitempty"`
	// Options are the fields of the requests that made or changed it, besides those above.
	Options     map[string]string `json:"options,omitempty"`
	Attachments []Attachment      `json:"attachments,omitempty"`
	Created     int64             `json:"created"`
	Modified    int64             `json:"modified"`
	// Deleted is when it went into the recycle bin.
	Deleted int64 `json:"deleted,omitempty"`
}

func (v *Volume) id() string    { return v.ID }
func (v *Volume) label() string { return v.Name }

// Attachment is a volume that is attached to a server record.
type Attachment struct {
	Volume string `json:"volume"`
	Server string `json:"server"`
	// LUN is that of a block volume, else -1.
	LUN int `json:"lun"`
	// Access is NFS, SMB, or empty for both; a block volume has none.
	Access   string `json:"access,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Server is a server record.
type Server struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// IQN is an iSCSI initiator, Address an IP or a CIDR; either may be empty.
	IQN     string `json:"iqn,omitempty"`
	Address string `json:"address,omitempty"`
	// Options are the other fields of the requests, without secrets.
	Options  map[string]string `json:"options,omitempty"`
	Created  int64             `json:"created"`
	Modified int64             `json:"modified"`
}

func (s *Server) id() string    { return s.ID }
func (s *Server) label() string { return s.Name }

// Snapshot is a snapshot of a volume.
type Snapshot struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Volume string `json:"volume"`
	Group  string `json:"group"`
	Pool   string `json:"pool"`
	// Size is the volume's at that time, in GiB.
	Size int64 `json:"size"`
	// Status replaces "normal", as a volume's does.
	Status   string `json:"status,omitempty"`
	Until    int64  `json:"until,omitempty"`
	Created  int64  `json:"created"`
	Modified int64  `json:"modified"`
}

func (s *Snapshot) id() string { return s.ID }

// label: two volumes may each have a snapshot of one name.
func (s *Snapshot) label() string { return s.Group + "/" + s.Name }

// Settings are what the array is, and how it answers.
type Settings struct {
	// Token is what requests must bring.
	Token string `json:"token"`
	// Version of the software.
	Version string `json:"version"`
	// Software is what the controllers say of theirs; empty for Version.
	Software string `json:"software,omitempty"`
	// Serial tells arrays apart: it is in the name and in the iSCSI target.
	Serial uint32 `json:"serial"`
	// Portals are the addresses of both controllers; Active is the index of the one that works, or -1.
	Portals [2]string `json:"portals"`
	Active  int       `json:"active"`
	// BothPortals: the data is served at both addresses, whichever controller is active.
	BothPortals bool `json:"bothPortals,omitempty"`
	// Away: the array does not answer, for this reason.
	Away dataplane.Away `json:"away,omitempty"`
	// CHAPUser and CHAPSecret are what initiators log in with.
	CHAPUser   string `json:"chapUser"`
	CHAPSecret string `json:"chapSecret"`
	// RecycleBin: deleted volumes stay in it for a week.
	RecycleBin bool `json:"recycleBin"`
	// Strings: numbers are written as strings.
	Strings bool `json:"strings,omitempty"`
	// Terse: answers to requests that create something do not tell its ID.
	Terse bool `json:"terse,omitempty"`
	// Message is where the text of an error stands: message, status-msg, status_msg or errors.
	Message string `json:"message,omitempty"`
	// NewStatus is the status of new volumes and snapshots, instead of a usable one, for as many
	// requests as NewStatusFor; for ever when that is 0.
	NewStatus    string `json:"newStatus,omitempty"`
	NewStatusFor int64  `json:"newStatusFor,omitempty"`
	// OneIQN: no two server records may have the same IQN.
	OneIQN bool `json:"oneIQN,omitempty"`
}

// Change is one change that the array made for a request.
type Change struct {
	Time time.Time `json:"time"`
	// Method, Path and Params are the request's; secrets are left out.
	Method string              `json:"method"`
	Path   string              `json:"path"`
	Params map[string][]string `json:"params,omitempty"`
	// Call is the method and the pattern of the path, such as "POST /api/volumes/*/expand.json".
	Call string `json:"call"`
	// Object is the ID of what was changed or made.
	Object string `json:"object"`
	// Lost: the client was not answered, or told that the request was submitted.
	Lost bool `json:"lost,omitempty"`
}
