package misuse

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestAnHonestDriverIsNotObjectedTo(t *testing.T) {
	site, top := newSite(t)
	before := tree(t, top)
	conn := (&fake{site: site}).serve(t)
	seen := make(map[string]bool)
	for i := range Number() {
		a := Send(t.Context(), conn, uint64(i), site)
		if why := Objection(a); why != "" || a.Unanswered() {
			t.Error(why)
		}
		if !a.Call.Bad || a.Call.To.Before(a.Call.From) || seen[a.What] {
			t.Errorf("%s: call %+v, seen before: %t", a.What, a.Call, seen[a.What])
		}
		seen[a.What] = true
	}
	if a, b := Send(t.Context(), conn, 3, site), Send(t.Context(), conn, 3+uint64(Number()), site); a.What != b.What {
		t.Errorf("a large pick: %q, want %q", b.What, a.What)
	}
	if err := site.Traces(); err != nil {
		t.Error(err)
	}
	if after := tree(t, top); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
	if err := site.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(site.pod()); !os.IsNotExist(err) {
		t.Errorf("the pod is left: %v", err)
	}
}

// TestTheGoodRequestIsGood: else a bad one could be refused for another reason
// than what is bad about it.
func TestTheGoodRequestIsGood(t *testing.T) {
	site, _ := newSite(t)
	f := &fake{site: site}
	for method, want := range map[string]codes.Code{"publish": codes.OK, "unpublish": codes.OK, "stats": codes.NotFound} {
		if err := f.check(method, site.good()); status.Code(err) != want {
			t.Errorf("%s: error %v, want code %s", method, err, want)
		}
	}
}

func TestWrongAnswersAreObjectedTo(t *testing.T) {
	says := func(code codes.Code, message string) func(error) error {
		return func(error) error { return status.Error(code, message) }
	}
	for name, tt := range map[string]struct {
		answer     func(error) error
		want       string
		unanswered bool
	}{
		"OK":            {func(error) error { return nil }, "not refused", false},
		"Internal":      {says(codes.Internal, "volume_id"), "with Internal instead of", false},
		"Unknown":       {says(codes.Unknown, "volume_id"), "with Unknown instead of", false},
		"no field":      {says(codes.InvalidArgument, "this is wrong"), "does not name volume_id", false},
		"another field": {says(codes.InvalidArgument, "target_path is wrong"), "does not name volume_id", false},
		"two lines":     {says(codes.InvalidArgument, "volume_id:\nis wrong"), "not one plain line", false},
		"a whole book":  {says(codes.InvalidArgument, strings.Repeat("volume_id ", 1000)), "10000 bytes", false},
		"not there":     {says(codes.Unavailable, "volume_id"), "with Unavailable instead of", true},
		"too late":      {says(codes.DeadlineExceeded, "volume_id"), "with DeadlineExceeded instead of", true},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := newSite(t)
			conn := (&fake{site: site, answer: tt.answer}).serve(t)
			for i, b := range bads {
				if !slices.Contains(b.fields, "volume_id") {
					continue
				}
				a := Send(t.Context(), conn, uint64(i), site)
				if why := Objection(a); !strings.Contains(why, tt.want) || !strings.Contains(why, b.what) || a.Unanswered() != tt.unanswered {
					t.Errorf("%s: objection %q, unanswered %t, want one with %q, %t", b.what, why, a.Unanswered(), tt.want, tt.unanswered)
				}
			}
		})
	}
}

func TestAllSpellingsOfAFieldAreAccepted(t *testing.T) {
	for message, want := range map[string]bool{
		"volume_id is missing": true, "Volume ID missing in request": true, "the VolumeId is bad": true, "volume-id": true,
		"volume is missing": false, "id is missing": false, "": false,
	} {
		if got := names(message, []string{"volume_id"}); got != want {
			t.Errorf("%q: %t, want %t", message, got, want)
		}
	}
}

// TestEveryTraceIsFound: a driver that makes directories before it looks at the
// input, and removes targets, leaves traces that a walk through everything sees.
func TestEveryTraceIsFound(t *testing.T) {
	careless := func(s *Site, method string, r *request) {
		if filepath.IsAbs(r.path) && method != "stats" && r.path != s.target {
			os.Remove(r.path)
		}
		if method != "publish" {
			return
		}
		// Whether it comes to anything is seen by the walk.
		_ = os.MkdirAll(s.work+"/"+r.context[keyPodUID]+"/"+r.id, 0o755)
		if filepath.IsAbs(r.path) && len(r.path) < unix.PathMax {
			_ = os.MkdirAll(r.path, 0o755)
		}
	}
	left := 0
	for i, b := range bads {
		site, top := newSite(t)
		before := tree(t, top)
		conn := (&fake{site: site, before: careless}).serve(t)
		Send(context.Background(), conn, uint64(i), site)
		changed := !slices.Equal(before, tree(t, top))
		if changed {
			left++
		}
		if err := site.Traces(); (err != nil) != changed {
			t.Errorf("%s with %s: error %v, changed %t", b.method, b.what, err, changed)
		}
		if err := site.Traces(); err != nil {
			t.Errorf("%s with %s: told twice: %v", b.method, b.what, err)
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
