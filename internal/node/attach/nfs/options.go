package nfs

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// request is what the options ask for.
type request struct {
	// version is 4.2, 4.1, 4.0 or 3, or newest4.
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

// versions are the values of vers, newest4 besides: the newest 4.x that both sides speak.
var versions = []string{"4.2", "4.1", "4.0", "3"}

const newest4 = "4"

// ofProgram are options that mount.nfs acts on by itself, or that Linux takes and ignores. Here they change nothing: the
// kubelet repeats a mount that failed. true: with a number as value.
var ofProgram = map[string]bool{"bg": false, "fg": false, "retry": true, "intr": false, "nointr": false}

// transports are other ways to write proto.
var transports = []string{"tcp", "tcp6", "rdma"}

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
	"addr":      "the daemon finds the address of the export's host",
	"mountaddr": "the daemon finds the address of the export's host",
	"udp":       "NFS needs TCP here; leave it out",
}

// parseOptions reads mount options. The error is volume.ErrInvalid, and names the option that is not acceptable.
func parseOptions(options []string) (request, error) {
	r := request{version: versions[0]}
	locks := false
	var minor string
	var err error
	var own []string
	if r.flags, own = mount.SplitOptions(options); len(own) < len(options) {
		r.generic = slices.DeleteFunc(slices.Clone(options), func(o string) bool { return slices.Contains(own, o) })
	}
	for _, option := range own {
		name, value, hasValue := strings.Cut(option, "=")
		switch name {
		case "vers", "nfsvers":
			if value != newest4 && !slices.Contains(versions, value) {
				return r, refuse(option, "is none of "+strings.Join(versions, ", "))
			}
			r.version = value
			continue
		case "minorversion":
			minor = value
			continue
		case "clientaddr":
			if r.clientAddress, err = parseAddress(value); err != nil {
				return r, refuse(option, "is not an IP address")
			}
			continue
		}
		if number, ok := ofProgram[name]; ok && number == hasValue {
			if _, err := strconv.ParseUint(value, 10, 32); number && err != nil {
				return r, refuse(option, "is not a number")
			}
			continue
		}
		if slices.Contains(transports, name) && !hasValue {
			r.proto = name
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
	if minor != "" {
		if r.version += "." + minor; !slices.Contains(versions, r.version) {
			return r, refuse("minorversion="+minor, "makes no version of vers=4: write one of "+strings.Join(versions, ", "))
		}
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

// negotiate calls mount until it succeeds: for newest4 with one version after the other, as long as one side does not
// speak it, else once.
func (r request) negotiate(mount func(request) error) (err error) {
	if r.version != newest4 {
		return mount(r)
	}
	for _, r.version = range versions {
		if r.version == "3" {
			break
		}
		err = mount(r)
		// A kernel that does not know the version says EINVAL.
		if !errors.Is(err, unix.EPROTONOSUPPORT) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return err
}

// known reports whether an option of NFS is one that is passed on to the kernel.
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
