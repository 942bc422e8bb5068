package nfs

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/mount"
	"github.com/katbox/katbox/internal/volume"
)

// request is what the options ask for.
type request struct {
	// version is 4.2, 4.1, 4.0 or 3.
	version string
	// flags are those of mount(2); own are the options of NFS, without those that the other fields hold.
	flags mount.Flags
	own   []string
	// generic are the options that became flags.
	generic []string
	// proto is the transport; empty for TCP over whatever the server's address is.
	proto string
	// clientAddress is where the server of NFS 4.0 calls back; invalid if no option says so.
	clientAddress netip.Addr
}

// versions are the values of vers.
var versions = []string{"4.2", "4.1", "4.0", "3"}

// switches are the options without a value. Those with true are for NFS 3 alone.
var switches = map[string]bool{
	"hard": false, "soft": false, "softerr": false, "softreval": false, "nosoftreval": false,
	"ac": false, "noac": false, "cto": false, "nocto": false, "rdirplus": false, "nordirplus": false,
	"sharecache": false, "nosharecache": false, "resvport": false, "noresvport": false,
	"lock": true, "nolock": true, "acl": true, "noacl": true,
}

// words are the options whose value is one of a list.
var words = map[string][]string{
	"sec":         {"sys", "none", "krb5", "krb5i", "krb5p"},
	"lookupcache": {"all", "none", "pos", "positive"},
	"local_lock":  {"none", "all", "flock", "posix"},
	"write":       {"lazy", "eager", "wait"},
	"xprtsec":     {"none", "tls", "mtls"},
	"mountproto":  {"tcp", "tcp6", "udp", "udp6"},
	"proto":       {"tcp", "tcp6", "rdma", "rdma6"},
}

// numbers are the options whose value is a number, with its bounds.
var numbers = map[string]struct{ least, most uint64 }{
	"rsize": {1024, 4 << 20}, "wsize": {1024, 4 << 20},
	"timeo": {1, 1 << 31}, "retrans": {0, 1 << 31}, "nconnect": {1, 16},
	"actimeo": {0, 1 << 31}, "acregmin": {0, 1 << 31}, "acregmax": {0, 1 << 31}, "acdirmin": {0, 1 << 31}, "acdirmax": {0, 1 << 31},
	"port": {1, 65535}, "mountport": {1, 65535},
}

// onlyVersion3 are options with a value that are for NFS 3 alone.
var onlyVersion3 = []string{"local_lock", "mountproto", "mountport"}

// hints say what to write instead of an option that is refused.
var hints = map[string]string{
	"addr":         "the daemon finds the address of the export's host",
	"mountaddr":    "the daemon finds the address of the export's host",
	"minorversion": "write vers=4.1 instead of vers=4,minorversion=1",
	"bg":           "the kubelet tries again by itself",
	"fg":           "the kubelet tries again by itself",
	"retry":        "the kubelet tries again by itself",
	"intr":         "Linux has ignored it since 2.6.25",
	"nointr":       "Linux has ignored it since 2.6.25",
	"udp":          "NFS needs TCP here",
	"tcp":          "write proto=tcp",
}

// parseOptions reads mount options. The error is volume.ErrInvalid, and names the option that is not acceptable.
func parseOptions(options []string) (request, error) {
	r := request{version: versions[0]}
	locks := false
	var err error
	var own []string
	if r.flags, own = mount.SplitOptions(options); len(own) < len(options) {
		r.generic = slices.DeleteFunc(slices.Clone(options), func(o string) bool { return slices.Contains(own, o) })
	}
	for _, option := range own {
		name, value, hasValue := strings.Cut(option, "=")
		switch name {
		case "vers", "nfsvers":
			if !slices.Contains(versions, value) {
				return r, refuse(option, "is none of "+strings.Join(versions, ", "))
			}
			r.version = value
			continue
		case "clientaddr":
			if r.clientAddress, err = parseAddress(value); err != nil {
				return r, refuse(option, "is not an IP address")
			}
			continue
		}
		if err := known(name, value, hasValue, option); err != nil {
			return r, err
		}
		if name == "proto" {
			r.proto = value
			continue
		}
		locks = locks || name == "lock" || name == "nolock"
		r.own = append(r.own, option)
	}
	for _, option := range r.own {
		name, _, _ := strings.Cut(option, "=")
		if r.version != "3" && (switches[name] || slices.Contains(onlyVersion3, name)) {
			return r, refuse(option, "is for vers=3, and this is vers="+r.version)
		}
	}
	if r.version == "3" && !locks {
		return r, refuse("vers=3", "needs nolock beside it, with which locks hold on one node only, "+
			"or lock, for which the node has to run rpc.statd")
	}
	return r, nil
}

// known tells whether an option of NFS is one that is passed on to the kernel.
func known(name, value string, hasValue bool, option string) error {
	if _, ok := switches[name]; ok && !hasValue {
		return nil
	}
	if list, ok := words[name]; ok {
		if !slices.Contains(list, value) {
			return refuse(option, "is none of "+strings.Join(list, ", "))
		}
		return nil
	}
	if bounds, ok := numbers[name]; ok {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n < bounds.least || n > bounds.most || strconv.FormatUint(n, 10) != value {
			return refuse(option, fmt.Sprintf("is not a number from %d to %d", bounds.least, bounds.most))
		}
		return nil
	}
	if hint, ok := hints[name]; ok {
		return refuse(option, "is not possible here: "+hint)
	}
	return refuse(option, "is not an option of NFS that is possible here")
}

func refuse(option, reason string) error {
	return volume.Invalid("volume_capability.mount.mount_flags", fmt.Sprintf("has %.80q, which %s", option, reason))
}

// data returns the options as the kernel takes them. It finds out itself where a server of NFS 4.0 calls back, unless
// an option says so.
func (r request) data(server netip.Addr) string {
	data := append([]string{"vers=" + r.version}, r.own...)
	proto := r.proto
	if proto == "" && server.Is6() {
		proto = "tcp6"
	}
	if proto == "" {
		proto = "tcp"
	}
	data = append(data, "proto="+proto, "addr="+server.String())
	if r.version == "3" {
		if !slices.ContainsFunc(r.own, func(o string) bool { return strings.HasPrefix(o, "mountproto=") }) {
			data = append(data, "mountproto="+strings.Replace(proto, "rdma", "tcp", 1))
		}
		return strings.Join(append(data, "mountaddr="+server.String()), ",")
	}
	if r.clientAddress.IsValid() {
		data = append(data, "clientaddr="+r.clientAddress.String())
	}
	return strings.Join(data, ",")
}

// fsType is the name under which the kernel has the version.
func (r request) fsType() string {
	if r.version == "3" {
		return "nfs"
	}
	return "nfs4"
}
