package mount

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseOptions(t *testing.T) {
	tests := []struct {
		name    string
		options []string
		want    change
		bind    bool
		refused bool
	}{
		{name: "nothing"},
		{name: "bind only", options: []string{"bind"}, bind: true},
		{name: "read-only", options: []string{"bind", "ro"}, bind: true, want: change{set: unix.MOUNT_ATTR_RDONLY}},
		{name: "read-write", options: []string{"rw"}, want: change{clear: unix.MOUNT_ATTR_RDONLY}},
		{name: "last of ro and rw wins", options: []string{"rw", "ro"}, want: change{set: unix.MOUNT_ATTR_RDONLY}},
		{name: "last of rw and ro wins", options: []string{"ro", "rw"}, want: change{clear: unix.MOUNT_ATTR_RDONLY}},
		{
			name: "several", options: []string{"nosuid", "nodev", "noexec"},
			want: change{set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC},
		},
		{
			name: "last atime mode wins", options: []string{"noatime", "strictatime", "nodiratime"},
			want: change{set: unix.MOUNT_ATTR_STRICTATIME | unix.MOUNT_ATTR_NODIRATIME, clear: unix.MOUNT_ATTR__ATIME},
		},
		{name: "executable", options: []string{"exec"}, want: change{clear: unix.MOUNT_ATTR_NOEXEC}},
		{name: "last of exec and noexec wins", options: []string{"exec", "noexec"}, want: change{set: unix.MOUNT_ATTR_NOEXEC}},
		{name: "of the file system", options: []string{"bind", "sync"}, refused: true},
		{name: "unknown", options: []string{"bind", "size=1g"}, refused: true},
		{name: "recursive", options: []string{"rbind"}, refused: true},
		{name: "empty", options: []string{"bind", ""}, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, bind, err := parseOptions(tt.options)
			if (err != nil) != tt.refused {
				t.Fatalf("error %v, want one: %v", err, tt.refused)
			}
			if got != tt.want || bind != tt.bind {
				t.Errorf("got %+v, bind %v; want %+v, bind %v", got, bind, tt.want, tt.bind)
			}
		})
	}
}

func TestKnownFlag(t *testing.T) {
	for flag, want := range map[string]bool{"ro": true, "rw": true, "noexec": true, "exec": true, "bind": false, "sync": false, "": false} {
		if KnownFlag(flag) != want {
			t.Errorf("KnownFlag(%q) is %v", flag, !want)
		}
	}
}

func TestRemountFlagsKeepWhatStatfsReports(t *testing.T) {
	tests := []struct {
		name    string
		st      uint64
		options []string
		want    uint64
	}{
		{name: "nothing known means strictatime", st: 0, want: unix.MS_STRICTATIME},
		{name: "relatime", st: unix.ST_RELATIME, want: unix.MS_RELATIME},
		{name: "noatime", st: unix.ST_NOATIME, want: unix.MS_NOATIME},
		{name: "strictatime with nodiratime", st: unix.ST_NODIRATIME, want: unix.MS_NODIRATIME | unix.MS_STRICTATIME},
		{
			name: "add to locked flags",
			st:   unix.ST_NOSUID | unix.ST_NODEV | unix.ST_NOEXEC | unix.ST_RELATIME | stNoSymfollow, options: []string{"ro"},
			want: unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME | unix.MS_NOSYMFOLLOW,
		},
		{name: "rw takes ro away", st: unix.ST_RDONLY | unix.ST_RELATIME, options: []string{"rw"}, want: unix.MS_RELATIME},
		{name: "another atime mode", st: unix.ST_NOATIME, options: []string{"relatime"}, want: unix.MS_RELATIME},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _, err := parseOptions(tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := remountFlags(c.apply(attributesOf(tt.st))); got != tt.want {
				t.Errorf("got %#x, want %#x", got, tt.want)
			}
		})
	}
}
