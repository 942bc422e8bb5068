package mount

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// FuzzOptions looks for options that are accepted and do something else than each of them in turn.
// They are separated by commas.
func FuzzOptions(f *testing.F) {
	f.Add("bind,ro,nosuid,nodev,noexec,nosymfollow", uint64(0))
	f.Add("bind,noatime,relatime,nodiratime,strictatime,rw,ro", uint64(unix.ST_NOATIME|unix.ST_RDONLY))
	f.Add("bind,exec,noexec,exec", uint64(unix.ST_NOEXEC))
	f.Fuzz(func(t *testing.T, text string, reported uint64) {
		options := strings.Split(text, ",")
		all, bind, err := parseOptions(options)
		unknown := slices.ContainsFunc(options, func(o string) bool { return o != "bind" && !KnownFlag(o) })
		if unknown != (err != nil) {
			t.Fatalf("%q: %v", options, err)
		}
		if err != nil {
			if all != (change{}) || bind {
				t.Errorf("%q: refused, but also %+v, bind %t", options, all, bind)
			}
			return
		}
		if bind != slices.Contains(options, "bind") {
			t.Errorf("%q: bind %t", options, bind)
		}
		before := attributesOf(reported)
		want := before
		for _, option := range options {
			one, _, err := parseOptions([]string{option})
			if err != nil {
				t.Fatal(err)
			}
			want = one.apply(want)
		}
		got := all.apply(before)
		if got != want {
			t.Errorf("%q make %#x of %#x, want %#x", options, got, before, want)
		}
		// The kernel refuses a bit that is both set and cleared, but in the atime field.
		if both := all.set & all.clear &^ unix.MOUNT_ATTR__ATIME; both != 0 {
			t.Errorf("%q both set and clear %#x", options, both)
		}
		// What old kernels are told is the same: its bits are those of statfs(2) but for the atime
		// modes.
		ms := remountFlags(got)
		for _, flag := range simple {
			if (ms&flag.ms != 0) != (got&flag.attribute != 0) {
				t.Errorf("%q: attributes %#x, mount flags %#x", options, got, ms)
			}
		}
		modes := 0
		for _, mode := range []uint64{unix.MS_NOATIME, unix.MS_RELATIME, unix.MS_STRICTATIME} {
			if ms&mode != 0 {
				modes++
			}
		}
		if modes != 1 {
			t.Errorf("%q: mount flags %#x have %d atime modes", options, ms, modes)
		}
	})
}

// FuzzTableText looks for a mount table that the daemon cannot read without harm, were the kernel
// to write it.
func FuzzTableText(f *testing.F) {
	f.Add("20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n30 20 8:1 /data/p/v /kube/t ro - ext4 /dev/sda1 rw\n", "/data", uint64(20))
	f.Add("20 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 20 8:1 /data/p/v//deleted /kube/t rw - ext4 /dev/sda1 rw", "/data", uint64(20))
	f.Fuzz(func(t *testing.T, text, dir string, id uint64) {
		lines, err := parseTable(text)
		if err != nil {
			return
		}
		if _, err := isBoundOnItself(lines, dir, id); err != nil {
			t.Log(err)
		}
		here, err := locate(lines, dir, id)
		if err != nil || !path.IsAbs(here.mount.Root) {
			return // the kernel writes no other roots
		}
		if uint64(here.mount.ID) != id || here.root != path.Clean(here.root) {
			t.Errorf("%s on mount %d is at %+v", dir, id, here)
		}
		// No directory has the name ".", which [Above] relies on.
		dot := func(info *mountinfo.Info) bool { return strings.HasSuffix(cutDeleted(info.Root), "/.") }
		if slices.ContainsFunc(lines, dot) {
			return
		}
		for _, b := range match(lines, here, "/kube") {
			if b.Source == "" {
				t.Errorf("%s itself is taken for what is mounted at %s", dir, b.Target)
			}
			shows := func(info *mountinfo.Info) bool {
				if b.Source == Above {
					_, above := within(here.root, cutDeleted(info.Root))
					return info.Mountpoint == b.Target && here.sameFileSystem(info) && above && strings.HasPrefix(b.Target, "/kube/")
				}
				return info.Mountpoint == b.Target && here.sameFileSystem(info) &&
					strings.TrimSuffix(here.root, "/")+"/"+b.Source == strings.TrimSuffix(info.Root, "//deleted")
			}
			if !slices.ContainsFunc(lines, shows) {
				t.Errorf("no line of the table has %+v", b)
			}
		}
	})
}

// compareParsers fails where moby's parser reads a table differently: but for a carriage return at
// the end of a line, which that takes off, and a second dash, of which it takes the last.
func compareParsers(t *testing.T, text string, got []*mountinfo.Info) {
	t.Helper()
	dashes := 0
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == '\n' }) {
		if field == "-" {
			dashes++
		}
	}
	if strings.Contains(text, "\r") || dashes > len(got) || len(text) > 60_000 {
		return
	}
	want, err := mountinfo.GetMountsFromReader(strings.NewReader(text), nil)
	if err != nil || len(want) != len(got) {
		t.Fatalf("%d mounts in %q, want %d, %v", len(got), text, len(want), err)
	}
	for i := range got {
		if *got[i] != *want[i] {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
}

// FuzzTableNames looks for names of directories, which pods choose, with which the kernel's line of
// one mount reads as something else.
func FuzzTableNames(f *testing.F) {
	f.Add("p/v", "kubelet/pods/p/mount", "/dev/sda1", "rw")
	f.Add("p/v/a b\tc\nd\\e#f\rg", "x", "a b", "rw,errors=continue")
	f.Fuzz(func(t *testing.T, source, target, device, options string) {
		for _, name := range []string{source, target} {
			// Of such elements the kernel has none.
			if name == "" || path.Clean("/"+name) != "/"+name || strings.Contains(name, "\x00") {
				return
			}
		}
		if strings.Contains(device+options, "\x00") || len(device)+len(options) > 4095 {
			return
		}
		const root = "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		text := root + fmt.Sprintf("30 20 8:1 /data/%s /%s ro,relatime shared:2 master:1 - ext4 %s %s\n",
			kernelEscape(source), kernelEscape(target), kernelEscape(device), kernelEscape(options)) +
			strings.Replace(root, "20 1 8:1 / /", "40 20 8:1 /data/after /after", 1)
		lines, err := parseTable(text)
		if err != nil {
			t.Fatal(err)
		}
		compareParsers(t, text, lines)
		here, err := locate(lines, "/data", 20)
		if err != nil {
			t.Fatal(err)
		}
		want := []Binding{{Source: source, Target: "/" + target, ReadOnly: true}, {Source: "after", Target: "/after"}}
		if got := match(lines, here, "/kube"); !slices.Equal(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// kernelEscape writes a name as the kernel does in a mount table.
func kernelEscape(name string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, "#", `\043`).Replace(name)
}
