package arrays

import (
	"testing"

	"github.com/katbox/katbox/internal/node/attach"
)

// TestWithin tells mounts of one volume from those of others that look alike.
func TestWithin(t *testing.T) {
	nfs := func(export string) attach.Mount {
		return attach.Mount{FSType: "nfs4", Source: "nas:/export/" + export, Root: "/", Device: 5}
	}
	disk := func(root string) attach.Mount {
		return attach.Mount{FSType: "ext4", Source: "/dev/sda", Root: root, Device: 8}
	}
	node := func(root string) attach.Mount {
		return attach.Mount{FSType: "devtmpfs", Source: "devtmpfs", Root: root, Device: 6}
	}
	for name, tt := range map[string]struct {
		m, of attach.Mount
		want  bool
	}{
		"export":                             {nfs("a"), nfs("a"), true},
		"another export on the same volume":  {nfs("b"), nfs("a"), false},
		"file system":                        {disk("/"), disk("/"), true},
		"directory of it":                    {disk("/sub"), disk("/"), true},
		"directory of a directory":           {disk("/sub/x"), disk("/sub"), true},
		"directory with a longer name":       {disk("/subx"), disk("/sub"), false},
		"another disk":                       {attach.Mount{FSType: "ext4", Root: "/", Device: 9}, disk("/"), false},
		"device":                             {node("/sda"), node("/sda"), true},
		"another device":                     {node("/sdb"), node("/sda"), false},
		"device that is gone":                {node("/sda//deleted"), node("/sda//deleted"), true},
		"gone device that had the same name": {node("/sda//deleted"), node("/sda"), false},
		"device that has a gone one's name":  {node("/sda"), node("/sda//deleted"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := within(tt.m, tt.of); got != tt.want {
				t.Errorf("%t, want %t", got, tt.want)
			}
		})
	}
}
