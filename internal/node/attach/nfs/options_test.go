package nfs

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/katbox/katbox/internal/model/volume"
)

func TestParseExport(t *testing.T) {
	for text, want := range map[string]export{
		"10.0.0.1:/export/x":          {host: "10.0.0.1", address: netip.MustParseAddr("10.0.0.1"), path: "/export/x"},
		"[fd00::1]:/x":                {host: "fd00::1", address: netip.MustParseAddr("fd00::1"), path: "/x"},
		"[fe80::1%eth0]:/x":           {host: "fe80::1%eth0", address: netip.MustParseAddr("fe80::1%eth0"), path: "/x"},
		"nas-1.example.com:/a b:/c":   {host: "nas-1.example.com", path: "/a b:/c"},
		"vsa-00000001.array:/export/": {host: "vsa-00000001.array", path: "/export/"},
		"10.0.0.1:/":                  {host: "10.0.0.1", address: netip.MustParseAddr("10.0.0.1"), path: "/"},
	} {
		if got, err := parseExport(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ":/x", "host", "host:x", "/x", "fd00::1:/x", "[fd00::1:/x", "fd00::1]:/x", "[10.0.0.1]:/x",
		"[::ffff:10.0.0.1]:/x", "[]:/x", "[host]:/x",
		"a,b:/x", "a b:/x", "-host:/x", "a..b:/x", "host:/x\ny", "host:/x\x00", "ho\nst:/x", "../x:/y",
		// What follows a comma is an option of its own for the kernel.
		"[fe80::1%eth0,sec=none]:/x", "[fe80::1%eth0,soft,addr=10.0.0.2]:/x", "[fe80::1%a b]:/x", "[fe80::1%]:/x",
		"host:/a/../b", "host:/..",
	} {
		if got, err := parseExport(text); !errors.Is(err, volume.ErrInvalid) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestOptions(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for _, tt := range []struct {
		options string
		server  netip.Addr
		fsType  string
		data    string
		flags   uintptr
	}{
		{"", four, "nfs4", "vers=4.2,proto=tcp,addr=10.0.0.1", 0},
		{"", six, "nfs4", "vers=4.2,proto=tcp6,addr=fd00::1", 0},
		{"proto=tcp6", six, "nfs4", "vers=4.2,proto=tcp6,addr=fd00::1", 0},
		{"vers=4.1,hard,timeo=600,retrans=2,rsize=1048576,nconnect=4,sec=krb5p,lookupcache=pos,noresvport", four, "nfs4",
			"vers=4.1,hard,timeo=600,retrans=2,rsize=1048576,nconnect=4,sec=krb5p,lookupcache=pos,noresvport," +
				"proto=tcp,addr=10.0.0.1", 0},
		{"nfsvers=4.0,soft,defaults,_netdev", four, "nfs4", "vers=4.0,soft,proto=tcp,addr=10.0.0.1", 0},
		{"noatime,nosuid,nocto", four, "nfs4", "vers=4.2,nocto,proto=tcp,addr=10.0.0.1", unix.MS_NOATIME | unix.MS_NOSUID},
		{"vers=4.0,clientaddr=10.0.0.9", four, "nfs4", "vers=4.0,proto=tcp,addr=10.0.0.1,clientaddr=10.0.0.9", 0},
		{"noexec,exec", four, "nfs4", "vers=4.2,proto=tcp,addr=10.0.0.1", unix.MS_RELATIME},
		// Those of PersistentVolumes that were made for mount.nfs.
		{"bg,intr,retry=10000,vers=4.1,tcp", four, "nfs4", "vers=4.1,proto=tcp,addr=10.0.0.1", 0},
		{"fg,nointr,hard,minorversion=1,vers=4", four, "nfs4", "vers=4.1,hard,proto=tcp,addr=10.0.0.1", 0},
		{"nfsvers=4,minorversion=0,rdma", four, "nfs4", "vers=4.0,proto=rdma,addr=10.0.0.1", 0},
		{"vers=3,nolock", four, "nfs", "vers=3,nolock,proto=tcp,addr=10.0.0.1,mountproto=tcp,mountaddr=10.0.0.1", 0},
		{"vers=3,lock,mountport=20048,mountproto=udp6,local_lock=none", six, "nfs",
			"vers=3,lock,mountport=20048,mountproto=udp6,local_lock=none,proto=tcp6,addr=fd00::1,mountaddr=fd00::1", 0},
		{"vers=3,nolock,proto=rdma,port=20049", four, "nfs",
			"vers=3,nolock,port=20049,proto=rdma,addr=10.0.0.1,mountproto=tcp,mountaddr=10.0.0.1", 0},
	} {
		r, err := parseOptions(split(tt.options))
		if err != nil {
			t.Errorf("%s: %v", tt.options, err)
			continue
		}
		if got := r.data(tt.server); got != tt.data || r.fsType() != tt.fsType || uintptr(r.flags) != tt.flags {
			t.Errorf("%s: %s %s, flags %#x\nwant %s %s, flags %#x", tt.options, r.fsType(), got, r.flags, tt.fsType, tt.data, tt.flags)
		}
	}
}

func split(options string) []string {
	return strings.FieldsFunc(options, func(r rune) bool { return r == ',' })
}

func TestOptionsThatAreRefused(t *testing.T) {
	for options, named := range map[string]string{
		"hard,no-such-option":     "no-such-option",
		"vers=2":                  "vers=2",
		"nfsvers=4.3":             "nfsvers=4.3",
		"vers":                    "vers",
		"minorversion=1":          "minorversion",
		"addr=10.0.0.1":           "addr",
		"mountaddr=10.0.0.1":      "mountaddr",
		"clientaddr=x":            "clientaddr",
		"hard=1":                  "hard=1",
		"timeo=":                  "timeo",
		"timeo=0":                 "timeo=0",
		"timeo=-1":                "timeo=-1",
		"timeo=0600":              "timeo=0600",
		"timeo":                   "timeo",
		"rsize=1,addr=10.0.0.2":   "rsize=1",
		"nconnect=17":             "nconnect=17",
		"sec=sys:krb5":            "sec=sys:krb5",
		"proto=udp":               "proto=udp",
		"udp":                     "udp",
		"proto=udp6":              "proto=udp6",
		"retry":                   "retry",
		"retry=x":                 "retry=x",
		"bg=1":                    "bg=1",
		"vers=4,minorversion=3":   "minorversion=3",
		"vers=4.1,minorversion=1": "minorversion=1",
		"nolock":                  "nolock",
		"vers=4.1,local_lock=all": "local_lock",
		"vers=3":                  "nolock",
		"vers=3,nolock,fsc":       "fsc",
		"":                        "",
	} {
		_, err := parseOptions(split(options))
		if options == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if !errors.Is(err, volume.ErrInvalid) || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v", options, err)
		}
	}
	// A comma inside one option would make two of it.
	for _, option := range []string{
		"timeo=600,addr=10.0.0.2", "sec=sys,soft", "clientaddr=10.0.0.1,soft", "clientaddr=fe80::1%eth0,soft", "vers=4.1,soft",
	} {
		if _, err := parseOptions([]string{option}); !errors.Is(err, volume.ErrInvalid) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestVersion4IsTheNewestThatBothSpeak, as with mount.nfs; a version with its minor number is that one.
func TestVersion4IsTheNewestThatBothSpeak(t *testing.T) {
	for _, tt := range []struct {
		option, speaks string
		refusal        error
		tried          string
		want           error
	}{
		{"vers=4", "4.2", nil, "4.2", nil},
		{"vers=4", "4.1", unix.EPROTONOSUPPORT, "4.2 4.1", nil},
		{"nfsvers=4", "4.0", unix.EINVAL, "4.2 4.1 4.0", nil}, // a kernel without the newer ones
		{"vers=4", "3", unix.EPROTONOSUPPORT, "4.2 4.1 4.0", unix.EPROTONOSUPPORT},
		{"vers=4", "none", unix.EACCES, "4.2", unix.EACCES},
		{"vers=4.2", "4.1", unix.EPROTONOSUPPORT, "4.2", unix.EPROTONOSUPPORT},
		{"noatime", "4.1", unix.EPROTONOSUPPORT, "4.2", unix.EPROTONOSUPPORT},
	} {
		r, err := parseOptions([]string{tt.option})
		if err != nil {
			t.Fatal(err)
		}
		var tried []string
		err = r.negotiate(func(one request) error {
			tried = append(tried, one.version)
			if one.version == tt.speaks {
				return nil
			}
			return tt.refusal
		})
		if got := strings.Join(tried, " "); got != tt.tried || !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s where %s is spoken: tried %s, %v; want %s, %v", tt.option, tt.speaks, got, err, tt.tried, tt.want)
		}
	}
}

func TestTransportAndAddress(t *testing.T) {
	for options, export := range map[string]string{"proto=tcp": "[fd00::1]:/x", "proto=tcp6": "10.0.0.1:/x", "proto=rdma": "[fd00::1]:/x"} {
		e, err := parseExport(export)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseOptions(split(options))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.server(e); !errors.Is(err, volume.ErrInvalid) {
			t.Errorf("%s with %s: %v", options, export, err)
		}
	}
}

func TestMountRefusesBeforeItDoesAnything(t *testing.T) {
	for _, err := range []error{
		Mount("nowhere", "/no/such/directory", nil, false), Mount("10.0.0.1:/x", "/no/such/directory", []string{"x"}, false),
	} {
		if !errors.Is(err, volume.ErrInvalid) {
			t.Error(err)
		}
	}
}

func TestErrorsOfTheKernel(t *testing.T) {
	e, server := export{host: "nas", path: "/x"}, netip.MustParseAddr("127.0.0.1")
	r, err := parseOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[unix.Errno]string{
		unix.EACCES: "has not exported /x to this node (127.0.0.1)", unix.EPROTONOSUPPORT: "does not speak NFS 4.2", unix.ENODEV: "nfsv4",
		unix.EINVAL: "vers=4.2", unix.ENOENT: "/x", unix.EBUSY: "busy", unix.ECONNREFUSED: "nas cannot be reached",
	} {
		got := explain(number, e, r, server)
		if got == nil || !errors.Is(got, number) || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", number, got)
		}
		if errors.Is(got, volume.ErrUnavailable) != (number == unix.ECONNREFUSED) || errors.Is(got, volume.ErrBusy) != (number == unix.EBUSY) {
			t.Errorf("%v: %v", number, got)
		}
	}
	if explain(nil, e, r, server) != nil {
		t.Error("an error of none")
	}
}
