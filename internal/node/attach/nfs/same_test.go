package nfs

import (
	"errors"
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
)

func TestCompare(t *testing.T) {
	// As Linux 6.1 shows a mount with vers=4.2,noac.
	const shown = "rw,sync,vers=4.2,rsize=262144,wsize=262144,namlen=255,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0,hard,noac,noresvport," +
		"proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.9,local_lock=none,addr=10.0.0.1"
	const source = "10.0.0.1:/x"
	there := attach.Mount{Root: "/", FSType: "nfs4", Source: source, Flags: []string{"rw", "noatime"}, Options: strings.Split(shown, ",")}
	for _, tt := range []struct {
		options  string
		readOnly bool
		conflict string
	}{
		{options: ""},
		{options: "hard,noac,vers=4.2,timeo=600,retrans=2,sec=sys,proto=tcp,noatime,rw,lookupcache=all,cto,noresvport,nosoftreval,defaults"},
		{options: "rsize=1048576,wsize=262144"},
		{options: "vers=4,bg,intr,retry=2,tcp"},
		{options: "rsize=65536", conflict: "rsize=65536"},
		{options: "soft", conflict: "soft"},
		{options: "ac", conflict: "ac"},
		{options: "nocto", conflict: "nocto"},
		{options: "resvport", conflict: "resvport"},
		{options: "softreval", conflict: "softreval"},
		{options: "timeo=300", conflict: "timeo=300"},
		{options: "vers=4.1", conflict: "vers=4.1"},
		{options: "vers=3,nolock", conflict: "nolock"},
		{options: "proto=tcp6", conflict: "proto=tcp6"},
		{options: "clientaddr=10.0.0.8", conflict: "clientaddr=10.0.0.8"},
		{options: "noexec", conflict: "noexec"},
		{readOnly: true, conflict: "ro"},
	} {
		r, err := parseOptions(split(tt.options))
		if err != nil {
			t.Fatal(err)
		}
		err = compare(there, source, r, tt.readOnly)
		switch {
		case tt.conflict == "" && err == nil:
		case tt.conflict != "" && errors.Is(err, volume.ErrConflict) && strings.HasSuffix(err.Error(), " "+tt.conflict):
		default:
			t.Errorf("%s: %v", tt.options, err)
		}
	}
	for name, other := range map[string]attach.Mount{
		"another export":   {Root: "/", FSType: "nfs4", Source: "10.0.0.1:/y"},
		"another system":   {Root: "/", FSType: "fuse.x", Source: source},
		"a part of it":     {Root: "/sub", FSType: "nfs4", Source: source},
		"nothing like one": {Root: "/var", FSType: "ext4", Source: "/dev/sda1"},
	} {
		if err := compare(other, source, request{}, false); !errors.Is(err, attach.ErrNotOurs) || !errors.Is(err, volume.ErrForeignMount) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
