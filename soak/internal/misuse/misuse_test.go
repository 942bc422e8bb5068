package misuse

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/mounttest"
)

// driver answers calls. That a real one can satisfy all of them is for the tests of package fake.
type driver func(request any) error

func (d driver) Invoke(_ context.Context, _ string, request, _ any, _ ...grpc.CallOption) error {
	return d(request)
}

func (driver) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}

// newSite is a site with directories of its own, some levels below that of the test, so that no way
// out of them leads further.
func newSite(t *testing.T) (site *Site, top string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(top, "one", "two")
	kubelet, work := filepath.Join(run, "kubelet"), filepath.Join(run, "work")
	if err := errors.Join(os.MkdirAll(filepath.Join(kubelet, "pods"), 0o755), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	if site, err = NewSite(kubelet, work); err != nil {
		t.Fatal(err)
	}
	return site, top
}

// TestAnswers sends all calls to drivers that have one answer for all.
func TestAnswers(t *testing.T) {
	site, _ := newSite(t)
	for _, test := range []struct {
		answer     error
		code       codes.Code // which calls
		field      string
		objection  string
		unanswered bool
	}{
		{nil, invalid, "volume_id", "not refused", false},
		{status.Error(codes.Internal, "volume_id"), invalid, "volume_id", "with Internal instead of InvalidArgument", false},
		{errors.New("volume_id"), invalid, "volume_id", "with Unknown instead of InvalidArgument", false},
		{status.Error(invalid, "no"), codes.NotFound, "", "with InvalidArgument instead of NotFound", false},
		{status.Error(invalid, "this is wrong"), invalid, "volume_id", "does not name volume_id", false},
		{status.Error(invalid, "target_path, id and volume"), invalid, "volume_id", "does not name volume_id", false},
		{status.Error(invalid, "volume_id:\nis wrong"), invalid, "volume_id", "not one plain line", false},
		{status.Error(invalid, strings.Repeat("volume_id ", 1000)), invalid, "volume_id", "10000 bytes", false},
		{status.Error(codes.Unavailable, "volume_id"), invalid, "volume_id", "with Unavailable instead of", true},
		{status.Error(codes.DeadlineExceeded, "volume_id"), invalid, "volume_id", "with DeadlineExceeded instead of", true},
		{status.Error(invalid, "volume_id is missing"), invalid, "volume_id", "", false},
		{status.Error(invalid, "Volume ID missing in request"), invalid, "volume_id", "", false},
		{status.Error(invalid, "the VolumeId is bad"), invalid, "volume_id", "", false},
		{status.Error(codes.NotFound, "no such volume"), codes.NotFound, "", "", false},
	} {
		sent := 0
		for i, c := range calls {
			if c.code != test.code || c.field != test.field {
				continue
			}
			sent++
			a := Send(t.Context(), driver(func(any) error { return test.answer }), uint64(i), site)
			if (a.Objection == "") != (test.objection == "") || !strings.Contains(a.Objection, test.objection) ||
				a.Objection != "" && !strings.HasPrefix(a.Objection, a.What) || a.Unanswered() != test.unanswered || !a.Call.Bad {
				t.Errorf("%s, answered %.99v: objection %q, unanswered %t; want %+v", a.What, test.answer, a.Objection, a.Unanswered(), test)
			}
		}
		if sent == 0 {
			t.Errorf("no call has code %s and field %q", test.code, test.field)
		}
	}
	seen := make(map[string]bool)
	for i := range uint64(Number()) {
		a, again := Send(t.Context(), driver(func(any) error { return nil }), i, site), calls[(i+uint64(Number()))%uint64(len(calls))].what()
		if seen[a.What] || a.What != again {
			t.Errorf("%s: seen before: %t; %d on: %s", a.What, seen[a.What], Number(), again)
		}
		seen[a.What] = true
	}
}

// TestEveryTraceIsFound: a driver that makes directories before it looks at the input, and removes
// targets, leaves traces that a walk through everything sees. One that does nothing leaves none.
func TestEveryTraceIsFound(t *testing.T) {
	left := 0
	for i, c := range calls {
		site, top := newSite(t)
		careless := driver(func(request any) error {
			r, publishes := request.(*csi.NodePublishVolumeRequest)
			path := r.GetTargetPath()
			if u, is := request.(*csi.NodeUnpublishVolumeRequest); is {
				path = u.GetTargetPath()
			}
			if filepath.IsAbs(path) && path != site.target {
				os.Remove(path)
			}
			if publishes {
				// Whether it comes to anything is seen by the walk.
				_ = os.MkdirAll(site.work+"/"+r.GetVolumeContext()[keyPodUID]+"/"+r.GetVolumeId(), 0o755)
				if filepath.IsAbs(path) && len(path) < unix.PathMax {
					_ = os.MkdirAll(path, 0o755)
				}
			}
			return status.Error(invalid, "")
		})
		before := tree(t, top)
		Send(t.Context(), careless, uint64(i), site)
		changed := !slices.Equal(before, tree(t, top))
		if changed {
			left++
		}
		if err := site.Traces(); (err != nil) != changed {
			t.Errorf("%s: error %v, changed %t", c.what(), err, changed)
		}
		if err := site.Traces(); err != nil {
			t.Errorf("%s: told twice: %v", c.what(), err)
		}
		if changed {
			continue
		}
		if err := site.Close(); err != nil {
			t.Errorf("%s: %v", c.what(), err)
		}
		if _, err := os.Lstat(site.pod()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the pod is left: %v", err)
		}
	}
	if left < Number()/3 {
		t.Errorf("only %d of %d bad calls left anything in the careless driver", left, Number())
	}
}

// tree is everything below a directory.
func tree(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestAMountIsATrace: the pods directory shows another one, and no path was made.
func TestAMountIsATrace(t *testing.T) {
	mounttest.Need(t)
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
