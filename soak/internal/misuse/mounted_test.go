package misuse

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAMountIsATrace: the pods directory shows another one, and no path was
// made.
func TestAMountIsATrace(t *testing.T) {
	if os.Getenv("KATBOX_ROOT_TESTS") != "1" {
		t.Skip("mounts: set KATBOX_ROOT_TESTS=1, as root or under unshare --user --map-root-user --mount")
	}
	site, _ := newSite(t)
	for name, source := range map[string]string{"another": site.work, "itself": site.pods()} {
		if err := unix.Mount(source, site.pods(), "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		mounted := site.Traces()
		if err := unix.Unmount(site.pods(), 0); err != nil {
			t.Fatal(err)
		}
		if mounted == nil || !strings.Contains(mounted.Error(), "mounted over") {
			t.Errorf("%s: error %v", name, mounted)
		}
		if err := site.Traces(); err == nil {
			t.Errorf("%s: nobody noticed that it was unmounted", name)
		}
	}
}
