package mount

import (
	"reflect"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

// table parses mount table lines, so that the rows below look like the real thing.
func table(t *testing.T, lines ...string) []*mountinfo.Info {
	t.Helper()
	infos, err := parseTable(strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

func TestMatch(t *testing.T) {
	const root = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"
	tests := []struct {
		name  string
		lines []string
		dir   string
		id    uint64
		want  []Binding
	}{
		{
			name:  "directory on the root file system",
			lines: []string{root, "30 20 8:1 /data/pod/vol /kube/t rw,relatime - ext4 /dev/sda1 rw"},
			dir:   "/data", id: 20,
			want: []Binding{{Source: "pod/vol", Target: "/kube/t"}},
		},
		{
			name: "read-only mount, and read-only file system",
			lines: []string{
				root,
				"30 20 8:1 /data/pod/a /kube/a ro,relatime - ext4 /dev/sda1 rw",
				"31 20 8:1 /data/pod/b /kube/b rw,relatime - ext4 /dev/sda1 ro,errors=remount-ro",
			},
			dir: "/data", id: 20,
			want: []Binding{{Source: "pod/a", Target: "/kube/a", ReadOnly: true}, {Source: "pod/b", Target: "/kube/b"}},
		},
		{
			name: "working directory is itself a bind mount of another place",
			lines: []string{
				"20 1 0:50 / / rw - overlay overlay rw",
				"21 20 8:1 /var/lib/katbox /csi-data-dir rw - ext4 /dev/sda1 rw",
				"22 20 8:1 /var/lib/kubelet /var/lib/kubelet rw shared:1 - ext4 /dev/sda1 rw",
				"30 22 8:1 /var/lib/katbox/pod/vol /var/lib/kubelet/pods/pod/mount rw shared:1 - ext4 /dev/sda1 rw",
				"31 22 8:1 /csi-data-dir/pod/vol /var/lib/kubelet/pods/trap rw - ext4 /dev/sda1 rw",
			},
			dir: "/csi-data-dir", id: 21,
			want: []Binding{{Source: "pod/vol", Target: "/var/lib/kubelet/pods/pod/mount"}},
		},
		{
			name: "btrfs subvolume",
			lines: []string{
				"20 1 0:30 /@ / rw - btrfs /dev/sda2 rw,subvol=/@",
				"30 20 0:30 /@/var/data/pod/vol /kube/t rw - btrfs /dev/sda2 rw,subvol=/@",
				"31 20 0:30 /var/data/pod/vol /kube/trap rw - btrfs /dev/sda2 rw",
			},
			dir: "/var/data", id: 20,
			want: []Binding{{Source: "pod/vol", Target: "/kube/t"}},
		},
		{
			name: "prefixes that are no parents",
			lines: []string{
				root,
				"30 20 8:1 /data2/pod/vol /kube/a rw - ext4 /dev/sda1 rw",
				"31 20 8:1 /data/pod/vol /kube2/b rw - ext4 /dev/sda1 rw",
			},
			dir: "/data", id: 20,
			want: []Binding{{Source: "pod/vol", Target: "/kube2/b"}},
		},
		{
			name: "the directory itself",
			lines: []string{
				root,
				"30 20 8:1 /data /kube/a rw - ext4 /dev/sda1 rw",
				"31 20 8:1 /data/pod/vol /kube rw - ext4 /dev/sda1 rw",
			},
			dir: "/data", id: 20,
			want: []Binding{{Source: "pod/vol", Target: "/kube"}},
		},
		{
			name: "the directory itself and those above it, mounted for pods",
			lines: []string{
				root,
				"30 20 8:1 /var/data /kube/pods/a rw - ext4 /dev/sda1 rw",
				"31 20 8:1 /var /kube/pods/b ro - ext4 /dev/sda1 rw",
				"32 20 8:1 / /kube/pods/c rw - ext4 /dev/sda1 rw",
				"33 20 8:1 /var/data /kube/pods rw - ext4 /dev/sda1 rw",
				"34 20 8:1 /var/data /kube/pods2/a rw - ext4 /dev/sda1 rw",
				"35 20 8:1 /var/data2 /kube/pods/d rw - ext4 /dev/sda1 rw",
				"36 20 8:2 / /kube/pods/e rw - ext4 /dev/sda2 rw",
			},
			dir: "/var/data", id: 20,
			want: []Binding{{Source: ".", Target: "/kube/pods/a"}, {Source: ".", Target: "/kube/pods/b", ReadOnly: true},
				{Source: ".", Target: "/kube/pods/c"}},
		},
		{
			name: "other file system with the same path",
			lines: []string{
				root,
				"30 20 8:2 /data/pod/vol /kube/a rw - ext4 /dev/sda2 rw",
				"31 20 9:1 /data/pod/vol /kube/b rw - ext4 /dev/md1 rw",
			},
			dir: "/data", id: 20,
		},
		{
			name:  "removed directory",
			lines: []string{root, "30 20 8:1 /data/pod/vol//deleted /kube/t rw - ext4 /dev/sda1 rw"},
			dir:   "/data", id: 20,
			want: []Binding{{Source: "pod/vol", Target: "/kube/t"}},
		},
		{
			name: "stacked mounts, lower one first",
			lines: []string{
				root,
				"30 20 8:1 /data/pod/a /kube/t rw - ext4 /dev/sda1 rw",
				"31 30 8:1 /data/pod/b /kube/t ro - ext4 /dev/sda1 rw",
			},
			dir: "/data", id: 20,
			want: []Binding{{Source: "pod/a", Target: "/kube/t"}, {Source: "pod/b", Target: "/kube/t", ReadOnly: true}},
		},
		{
			name: "mounts inside a bound directory",
			lines: []string{
				root,
				"30 20 8:1 /data/pod/vol /kube/t rw - ext4 /dev/sda1 rw",
				"31 30 0:60 / /kube/t/tmp rw - tmpfs tmpfs rw",
				"32 20 8:1 /data/pod/vol/sub/dir /kube/subpaths/0 rw - ext4 /dev/sda1 rw",
			},
			dir: "/data", id: 20,
			want: []Binding{{Source: "pod/vol", Target: "/kube/t"}, {Source: "pod/vol/sub/dir", Target: "/kube/subpaths/0"}},
		},
		{
			name: "a mount of its own hides the one below",
			lines: []string{
				root,
				"25 20 8:1 /data /data rw - ext4 /dev/sda1 rw",
				"30 20 8:1 /data/pod/vol /kube/t rw - ext4 /dev/sda1 rw",
			},
			dir: "/data", id: 25,
			want: []Binding{{Source: "pod/vol", Target: "/kube/t"}},
		},
		{
			name: "whole file system",
			lines: []string{
				root,
				"25 20 8:3 / /data rw - xfs /dev/sdb rw",
				"30 20 8:3 /pod/vol /kube/t rw - xfs /dev/sdb rw",
			},
			dir: "/data", id: 25,
			want: []Binding{{Source: "pod/vol", Target: "/kube/t"}},
		},
		{
			name: "escapes, and spaces that the kernel does not escape",
			lines: []string{
				root,
				`30 20 8:1 /data/pod/a\040b\134c /kube/x\040y rw - ext4 /dev/sda1 rw`,
				"31 20 8:1 /data/pod/vol/a\r/kube/forged /kube/t rw - ext4 /dev/sda1 rw",
			},
			dir: "/data", id: 20,
			want: []Binding{
				{Source: `pod/a b\c`, Target: "/kube/x y"},
				{Source: "pod/vol/a\r/kube/forged", Target: "/kube/t"},
			},
		},
		{
			name:  "a line that is longer than any buffer",
			lines: []string{root, "30 20 8:1 /data/pod/vol" + strings.Repeat(`/\134`, 20_000) + " /kube/t ro - ext4 /dev/sda1 rw"},
			dir:   "/data", id: 20,
			want: []Binding{{Source: "pod/vol" + strings.Repeat(`/\`, 20_000), Target: "/kube/t", ReadOnly: true}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines := table(t, tt.lines...)
			here, err := locate(lines, tt.dir, tt.id)
			if err != nil {
				t.Fatal(err)
			}
			if got := match(lines, here, "/kube/pods"); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestParseTableRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":                       "",
		"no file system":                "30 20 8:1 /a /b rw shared:1 ext4 /dev/sda1 rw",
		"file system without options":   "30 20 8:1 /a /b rw - ext4 /dev/sda1",
		"number that is none":           "x 20 8:1 /a /b rw - ext4 /dev/sda1 rw",
		"device without a minor number": "30 20 8 /a /b rw - ext4 /dev/sda1 rw",
		"escape that is cut off":        `30 20 8:1 /a\04 /b rw - ext4 /dev/sda1 rw`,
		"escape of no byte":             `30 20 8:1 /a /b\400 rw - ext4 /dev/sda1 rw`,
		"escape that is not octal":      `30 20 8:1 /a /b\09z rw - ext4 /dev/sda1 rw`,
	} {
		if got, err := parseTable(line + "\n"); err == nil {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}

func TestLocateRefuses(t *testing.T) {
	lines := table(t, "20 1 8:1 / /mnt rw - ext4 /dev/sda1 rw")
	if _, err := locate(lines, "/data", 99); err == nil {
		t.Error("found a mount that is not in the table")
	}
	if _, err := locate(lines, "/data", 20); err == nil {
		t.Error("took a directory to be on a mount that is elsewhere")
	}
}
