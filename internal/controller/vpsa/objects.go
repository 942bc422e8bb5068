package vpsa

import (
	"math"
	"net/netip"
	"strings"

	"github.com/katbox/katbox/internal/controller/array"
)

type volume struct {
	ID           text   `json:"name"`
	Name         text   `json:"display_name"`
	Group        text   `json:"cg_name"`
	Pool         text   `json:"pool_name"`
	Status       text   `json:"status"`
	Capacity     number `json:"virtual_capacity"`
	DataType     text   `json:"data_type"`
	Servers      text   `json:"server_ext_names"`
	HasSnapshots flag   `json:"has_snapshots"`
	Export       text   `json:"nfs_export_path"`
	Comment      text   `json:"comment"`
	Encrypted    flag   `json:"encryption"`
}

func (v volume) words() array.Volume {
	return array.Volume{
		ID: string(v.ID), Name: string(v.Name), Group: string(v.Group), PoolID: string(v.Pool), Comment: string(v.Comment),
		// A volume that is a little smaller than a size is not as large.
		Size:  array.Size(math.Floor(float64(v.Capacity))) * array.GiB,
		Block: strings.EqualFold(string(v.DataType), "block"), Export: string(v.Export),
		Status: string(v.Status), Usable: isOneOf(v.Status, "available", "in-use"),
		Servers: split(v.Servers), HasSnapshots: bool(v.HasSnapshots), Encrypted: bool(v.Encrypted),
	}
}

type snapshot struct {
	ID      text   `json:"name"`
	Name    text   `json:"display_name"`
	Group   text   `json:"cg_name"`
	Pool    text   `json:"pool_name"`
	Volume  text   `json:"volume_ext_name"`
	MiB     number `json:"volume_capacity_mb"`
	Status  text   `json:"status"`
	Created text   `json:"created_at"`
}

func (s snapshot) words() array.Snapshot {
	return array.Snapshot{
		ID: string(s.ID), Name: string(s.Name), Group: string(s.Group), PoolID: string(s.Pool), VolumeID: string(s.Volume),
		Size:    array.Size(math.Ceil(float64(s.MiB)/1024)) * array.GiB,
		Created: timeOf(s.Created), Status: string(s.Status), Usable: isOneOf(s.Status, "normal", "available"),
	}
}

// server is a server record; in the list of a volume's servers, also how the volume is attached to it.
type server struct {
	ID       text   `json:"name"`
	Name     text   `json:"display_name"`
	IQN      text   `json:"iqn"`
	Address  text   `json:"iscsi_ip"`
	ReadOnly flag   `json:"read_only"`
	Target   text   `json:"target"`
	LUN      number `json:"lun"`
}

func (s server) words() array.Server {
	return array.Server{ID: string(s.ID), Name: string(s.Name), IQN: string(s.IQN), Address: address(string(s.Address))}
}

// address is an address without the length that makes it a network of one address.
func address(s string) string {
	if p, err := netip.ParsePrefix(s); err == nil && p.IsSingleIP() {
		return p.Addr().String()
	}
	return s
}

type pool struct {
	ID          text   `json:"name"`
	Name        text   `json:"display_name"`
	Capacity    number `json:"capacity"`
	Available   number `json:"available_capacity"`
	Provisioned number `json:"provisioned_capacity"`
	Mode        text   `json:"capacity_mode"`
	Status      text   `json:"status"`
}

func (p pool) words() array.Pool {
	w := array.Pool{
		ID: string(p.ID), Name: string(p.Name),
		Total: bytesOf(p.Capacity), Available: bytesOf(p.Available), Provisioned: bytesOf(p.Provisioned),
	}
	switch mode := array.Mode(strings.ToLower(string(p.Mode))); mode {
	case array.Normal, array.Alert, array.Protected, array.Emergency:
		w.Mode = mode
	}
	status := strings.ToLower(string(p.Status))
	for _, bad := range []string{"fail", "offline", "error"} {
		if strings.Contains(status, bad) {
			w.Failed = "the array says of its pool: " + string(p.Status)
		}
	}
	return w
}

// bytesOf are the bytes of a number of GiB, which arrays call GB.
func bytesOf(n number) int64 { return int64(float64(n) * (1 << 30)) }

type controller struct {
	State    text `json:"state"`
	Target   text `json:"target"`
	IPv4     text `json:"iscsi_ip"`
	IPv6     text `json:"iscsi_ipv6"`
	Software text `json:"software-ver"`
	User     text `json:"vpsa_chap_user"`
	Secret   text `json:"vpsa_chap_secret"`
}

func isOneOf(s text, words ...string) bool {
	for _, w := range words {
		if strings.EqualFold(string(s), w) {
			return true
		}
	}
	return false
}
