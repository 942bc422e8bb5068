package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// world is an array with a volume, a snapshot of another one, and two servers, one of which has the first volume.
type world struct {
	*fakevpsa.Array
	wire   *wire
	client array.Array
}

const (
	first  = "volume-00000001"
	second = "volume-00000002"
	group2 = "cg-00000042"
	snap   = "snap-00000001"
	other  = "srv-00000001"
	node   = "srv-00000002"
)

func newWorld(t *testing.T) *world {
	t.Helper()
	a := newArray(t, fakevpsa.Options{NoRecycleBin: true})
	w := &world{Array: a, wire: &wire{array: a}}
	w.client = newClient(t, w.wire)
	for _, name := range []string{"one", "two"} {
		must(a.AddVolume(fakevpsa.Volume{Name: name, Pool: "pool-00000001", Size: 100, Block: true, Comment: "ours"}))(t)
	}
	must(a.AddSnapshot(second, "s1"))(t)
	must(a.AddServer(fakevpsa.Server{Name: "other", IQN: "iqn.2026-11.io.katbox:other", Address: "10.0.0.8"}))(t)
	must(a.AddServer(fakevpsa.Server{Name: "node", IQN: "iqn.2026-11.io.katbox:node", Address: "10.0.0.9"}))(t)
	must(w.client.Attach(t.Context(), array.NewAttachment{ServerID: other, VolumeID: first}))(t)
	w.wire.calls = nil
	return w
}

// volume counts the volumes with a name, and returns the last.
func (w *world) volume(name string) (v fakevpsa.Volume, n int) {
	for _, one := range w.Volumes() {
		if one.Name == name {
			v = one
			n++
		}
	}
	return v, n
}

// operation is one method, and what is to be true once it has returned nil.
type operation struct {
	name string
	do   func(context.Context, *world) error
	want func(*world) error
}

var operations = []operation{
	{"create", func(ctx context.Context, w *world) error {
		v, err := w.client.CreateVolume(ctx, array.NewVolume{Name: "new", Size: 7 * array.GiB, Comment: "mine"})
		if err == nil && (v.Name != "new" || v.Size != 7*array.GiB || v.Comment != "mine" || v.ID == "" || v.Export == "") {
			return fmt.Errorf("made %+v", v)
		}
		return err
	}, func(w *world) error {
		if v, n := w.volume("new"); n != 1 || v.Size != 7 || v.Comment != "mine" {
			return fmt.Errorf("%d volumes, the last is %+v", n, v)
		}
		return nil
	}},
	{"clone", func(ctx context.Context, w *world) error {
		_, err := w.client.CloneVolume(ctx, array.NewClone{Name: "new", Group: group2, SnapshotID: snap, Comment: "mine"})
		return err
	}, func(w *world) error {
		if v, n := w.volume("new"); n != 1 || v.Size != 100 || v.Comment != "mine" {
			return fmt.Errorf("%d volumes, the last is %+v", n, v)
		}
		return nil
	}},
	{"grow", func(ctx context.Context, w *world) error {
		v, err := w.client.GrowVolume(ctx, first, 150*array.GiB)
		if err == nil && v.Size != 150*array.GiB {
			return fmt.Errorf("grew to %s", v.Size)
		}
		return err
	}, func(w *world) error {
		if v, _ := w.volume("one"); v.Size != 150 {
			return fmt.Errorf("it has %d GiB", v.Size)
		}
		return nil
	}},
	{"comment", func(ctx context.Context, w *world) error {
		return w.client.CommentVolume(ctx, first, "other")
	}, func(w *world) error {
		if v, _ := w.volume("one"); v.Comment != "other" {
			return fmt.Errorf("the comment is %q", v.Comment)
		}
		return nil
	}},
	{"delete snapshot and volume", func(ctx context.Context, w *world) error {
		if err := w.client.DeleteSnapshot(ctx, snap); err != nil {
			return err
		}
		return w.client.DeleteVolume(ctx, second)
	}, func(w *world) error {
		if n := len(w.Volumes()) + len(w.Snapshots()); n != 1 {
			return fmt.Errorf("%d volumes and snapshots are left", n)
		}
		return nil
	}},
	{"snapshot", func(ctx context.Context, w *world) error {
		s, err := w.client.CreateSnapshot(ctx, array.NewSnapshot{Name: "s2", VolumeID: second})
		if err == nil && (s.ID == "" || s.Name != "s2" || s.VolumeID != second || s.Size != 100*array.GiB) {
			return fmt.Errorf("took %+v", s)
		}
		return err
	}, func(w *world) error {
		if n := len(w.Snapshots()); n != 2 {
			return fmt.Errorf("%d snapshots", n)
		}
		return nil
	}},
	{"make server", func(ctx context.Context, w *world) error {
		s, err := w.client.EnsureServer(ctx, array.NewServer{Name: "third", IQN: "iqn.2026-11.io.katbox:third", Address: "10.0.0.10"})
		if err == nil && (s.ID == "" || s.Address != "10.0.0.10") {
			return fmt.Errorf("made %+v", s)
		}
		return err
	}, func(w *world) error {
		if n := len(w.Servers()); n != 3 {
			return fmt.Errorf("%d servers", n)
		}
		return nil
	}},
	{"change server", func(ctx context.Context, w *world) error {
		_, err := w.client.EnsureServer(ctx, array.NewServer{Name: "node", IQN: "iqn.2026-11.io.katbox:node", Address: "10.0.0.11"})
		return err
	}, func(w *world) error {
		if s := w.Servers(); len(s) != 2 || s[1].Address != "10.0.0.11" {
			return fmt.Errorf("the servers are %+v", s)
		}
		return nil
	}},
	{"delete server", func(ctx context.Context, w *world) error {
		return w.client.DeleteServer(ctx, node)
	}, func(w *world) error {
		if n := len(w.Servers()); n != 1 {
			return fmt.Errorf("%d servers", n)
		}
		return nil
	}},
	{"attach", func(ctx context.Context, w *world) error {
		a, err := w.client.Attach(ctx, array.NewAttachment{ServerID: node, VolumeID: first})
		if err == nil && (a.ServerID != node || a.VolumeID != first || a.Target == "") {
			return fmt.Errorf("attached as %+v", a)
		}
		return err
	}, func(w *world) error {
		if n := len(w.Attachments()); n != 2 {
			return fmt.Errorf("%d attachments", n)
		}
		return nil
	}},
	{"detach", func(ctx context.Context, w *world) error {
		return w.client.Detach(ctx, first, other)
	}, func(w *world) error {
		if n := len(w.Attachments()); n != 0 {
			return fmt.Errorf("%d attachments", n)
		}
		return nil
	}},
	{"attach and think better of it", func(ctx context.Context, w *world) error {
		if w.wire.count() == 0 {
			_, _ = w.client.Attach(ctx, array.NewAttachment{ServerID: node, VolumeID: first})
		}
		return w.client.Detach(ctx, first, node)
	}, func(w *world) error {
		if n := len(w.Attachments()); n != 1 {
			return fmt.Errorf("%d attachments", n)
		}
		return nil
	}},
	{"detach and think better of it", func(ctx context.Context, w *world) error {
		if w.wire.count() == 0 {
			_ = w.client.Detach(ctx, first, other)
		}
		_, err := w.client.Attach(ctx, array.NewAttachment{ServerID: other, VolumeID: first})
		return err
	}, func(w *world) error {
		if n := len(w.Attachments()); n != 1 {
			return fmt.Errorf("%d attachments", n)
		}
		return nil
	}},
	{"create and think better of it", func(ctx context.Context, w *world) error {
		if w.wire.count() == 0 {
			_, _ = w.client.CreateVolume(ctx, array.NewVolume{Name: "new", Size: 7 * array.GiB})
		}
		v, err := w.client.VolumeNamed(ctx, "new")
		if errors.Is(err, array.ErrUncertain) {
			return err
		}
		if err == nil {
			return w.client.DeleteVolume(ctx, v.ID)
		}
		if errors.Is(err, array.ErrNotFound) {
			return nil
		}
		return err
	}, func(w *world) error {
		if _, n := w.volume("new"); n != 0 {
			return fmt.Errorf("%d volumes are left", n)
		}
		return nil
	}},
}

// fates are what may become of a request.
var fates = map[string]func(a *fakevpsa.Array, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error){
	"request lost": func(*fakevpsa.Array, *http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return nil, errBroken
	},
	"answer lost": func(_ *fakevpsa.Array, _ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if answer, err := pass(); err == nil {
			_ = answer.Body.Close()
		}
		return nil, errBroken
	},
	"bad gateway, done":    failing(fakevpsa.Fault{Kind: fakevpsa.DelayAfter}, http.StatusBadGateway),
	"submitted":            failing(fakevpsa.Fault{Kind: fakevpsa.Submit, Delay: 7 * time.Second}, 0),
	"submitted, next":      failing(fakevpsa.Fault{Kind: fakevpsa.Submit, Requests: 1}, 0),
	"lost, done late":      failing(fakevpsa.Fault{Kind: fakevpsa.Submit, Delay: 9 * time.Second}, http.StatusBadGateway),
	"lost, done by 2 more": failing(fakevpsa.Fault{Kind: fakevpsa.Submit, Requests: 2}, http.StatusBadGateway),
	"HTML":                 failing(fakevpsa.Fault{Kind: fakevpsa.HTML}, 0),
	"hangs":                failing(fakevpsa.Fault{Kind: fakevpsa.Hang}, 0),
	"hangs, done":          failing(fakevpsa.Fault{Kind: fakevpsa.HangAfter}, 0),
}

// failing has a fault on the array for a request that changes something; the client sees the code, where
// that is not 0.
func failing(f fakevpsa.Fault, code int) func(*fakevpsa.Array, *http.Request, func() (*http.Response, error)) (*http.Response, error) {
	return func(a *fakevpsa.Array, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if f.Kind == fakevpsa.Submit && r.Method == http.MethodGet {
			return pass()
		}
		f.Times = 1
		if _, err := a.Fail(f); err != nil {
			return nil, err
		}
		answer, err := pass()
		if code != 0 && err == nil {
			answer.StatusCode = code
		}
		return answer, err
	}
}

// readable are the fates of a request that reads: what is done after it makes no difference to the array.
var readable = []string{"request lost", "HTML", "hangs"}

// TestFates lets each request of each operation meet each fate, alone and together with the next two
// of its kind. The operation is repeated while it fails.
func TestFates(t *testing.T) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			var requests []string
			synctest.Test(t, func(t *testing.T) { requests = play(t, op, nil) })
			for name, fate := range fates {
				for i, request := range requests {
					often := []int{1, 3}
					if strings.HasPrefix(request, http.MethodGet) {
						if !slices.Contains(readable, name) {
							continue
						}
						often = []int{readings} // once is in TestReadingIsRepeated
					}
					for _, times := range often {
						t.Run(fmt.Sprintf("%s, %d, %d times", name, i+1, times), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								w := fateful{fate: fate, from: i + 1, left: times}
								play(t, op, &w)
							})
						})
					}
				}
			}
		})
	}
}

// fateful lets a request meet a fate, and later ones with the same method.
type fateful struct {
	fate       func(*fakevpsa.Array, *http.Request, func() (*http.Response, error)) (*http.Response, error)
	from, left int
	method     string
}

// play repeats an operation until it returns nil, and checks. It returns the requests.
func play(t *testing.T, op operation, f *fateful) []string {
	t.Helper()
	w := newWorld(t)
	if f != nil {
		w.wire.do = func(n int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if n < f.from || f.left == 0 || f.method != "" && f.method != r.Method {
				return pass()
			}
			f.method = r.Method
			f.left--
			return f.fate(w.Array, r, pass)
		}
	}
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		err := op.do(ctx, w)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, array.ErrUncertain) && !errors.Is(err, array.ErrUnreachable) || attempt == 50 {
			t.Fatalf("attempt %d: %v\n%s", attempt, err, strings.Join(w.wire.calls, "\n"))
		}
		time.Sleep(time.Duration(attempt) * time.Second)
	}
	requests := slices.Clone(w.wire.calls)
	check := func(when string) {
		if err := op.want(w); err != nil {
			t.Errorf("%s: %v\n%s", when, err, strings.Join(w.wire.calls, "\n"))
		}
	}
	check("at once")
	time.Sleep(time.Hour)
	w.Settle()
	check("an hour later")
	return requests
}
