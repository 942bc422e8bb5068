package dataplane

// Plane keeps data as an array's state says. A call may be repeated: what is as it should be stays so,
// and what a crash has left half done is completed. Calls come one at a time.
type Plane interface {
	// Found returns what there is from before, so that it can be compared with the state. It comes first;
	// target is the IQN of the array's iSCSI target.
	Found(target string) (Found, error)
	// Front sets where the array answers, and to which credentials.
	Front(Front) error
	// Admit lets an initiator log in; Dismiss ends its sessions and admits it no more. It has no
	// exports then.
	Admit(iqn string) error
	Dismiss(iqn string) error
	// CreateDisk makes an empty volume, or takes it into service as it is.
	CreateDisk(Disk) error
	// Clone makes a volume with the content that another, or a snapshot, has now.
	Clone(d Disk, source string) error
	// Snapshot keeps the content that a volume has now.
	Snapshot(snapshot string, of Disk) error
	// Expand makes a volume as large as it says. Clients see that without another attachment.
	Expand(Disk) error
	// Export lets a client reach a volume, or changes whether it may write.
	Export(e Export, readOnly bool) error
	// Unexport cuts a client off.
	Unexport(Export) error
	// Delete removes a volume or a snapshot. It is exported to no client.
	Delete(id string) error
}

// Disk is the data of a volume.
type Disk struct {
	// ID of the volume.
	ID string
	// Size in bytes.
	Size int64
	// Block tells a block device from a file system.
	Block bool
	// Path is where a file system is exported, such as /export/x; empty while it is out of service, as in
	// the recycle bin.
	Path string
}

// Export is one way of one client to one volume.
type Export struct {
	// Volume is the ID of a block volume. IQN is the initiator's, LUN the number that it sees.
	Volume string
	IQN    string
	LUN    int
	// Path is that of a file system, Address the IP or the CIDR of the clients.
	Path    string
	Address string
}

// Front is how clients reach the array.
type Front struct {
	// Portals are the addresses at which it answers, for iSCSI and for NFS.
	Portals []string
	// User and Secret are what initiators log in with (CHAP).
	User, Secret string
	Away         Away
}

// Away is why an array does not answer.
type Away string

// Why an array does not answer.
const (
	// Here: it answers.
	Here Away = ""
	// Network: what clients send gets lost.
	Network Away = "network"
	// Down: the array has broken its connections and takes none. NFS servers forget their clients, which
	// have to claim again what they had open.
	Down Away = "down"
)

// Found is what a plane has from before.
type Found struct {
	// Disks are the IDs of volumes and snapshots.
	Disks      []string
	Initiators []string
	Exports    []Export
}
