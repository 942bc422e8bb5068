package vpsa

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

func TestHealth(t *testing.T) {
	a := newArray(t, fakevpsa.Options{Pools: []fakevpsa.Pool{
		{Capacity: 100, Used: 10 << 10, Mode: "alert"}, {Capacity: 50, Status: "Failed"},
	}})
	if _, err := a.AddVolume(fakevpsa.Volume{Name: "v", Pool: "pool-00000001", Size: 7, Block: true}); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, &wire{array: a})
	h := must(c.Health(within(t)))(t)
	chap := array.CHAP{User: "vpsa-user", Secret: "vpsa-secret-12"}
	if h.Version != "22.06-sp1-123" || h.IQN != a.Target() || h.Portal != "10.0.1.1:3260" || h.CHAP != chap {
		t.Errorf("the health is %+v", h)
	}
	if len(h.Pools) != 2 {
		t.Fatalf("the pools are %+v", h.Pools)
	}
	p := h.Pools[0]
	if p.ID != "pool-00000001" || p.Total != 100<<30 || p.Available > 90<<30 || p.Available < 80<<30 || p.Provisioned != 7<<30 ||
		p.Mode != array.Alert || p.Failed != "" {
		t.Errorf("the first pool is %+v", p)
	}
	if h.Pools[1].Failed == "" {
		t.Errorf("the second pool is %+v", h.Pools[1])
	}
	if err := a.SwitchController(); err != nil {
		t.Fatal(err)
	}
	if h = must(c.Health(within(t)))(t); h.Portal != "10.0.1.2:3260" {
		t.Errorf("after a failover the portal is %s", h.Portal)
	}
	if changed, err := c.Configure(within(t)); len(changed) > 0 || err != nil {
		t.Errorf("configured %q, %v", changed, err)
	}
}

func TestNoActiveController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := answering(t, 200, "application/json", `{"response":{"status":0,"vcontrollers":[{"state":"standby"}]}}`)
		_, err := c.Health(t.Context())
		wantError(t, err, array.ErrBadAnswer)
	})
}

// TestVersionThatIsNotTold: no public client asks for the version, so it proves nothing if an array has no answer to that.
func TestVersionThatIsNotTold(t *testing.T) {
	for name, f := range map[string]fakevpsa.Fault{
		"404":          {Kind: fakevpsa.HTTP, Status: 404},
		"a page":       {Kind: fakevpsa.HTML},
		"a 404 page":   {Kind: fakevpsa.HTML, Status: 404},
		"forbidden":    {Kind: fakevpsa.HTTP, Status: 403},
		"a failure":    {Kind: fakevpsa.HTTP, Status: 502},
		"refused":      {Kind: fakevpsa.Refuse, Status: 5},
		"no answer":    {Kind: fakevpsa.LoseAnswer},
		"half of it":   {Kind: fakevpsa.Cut, Bytes: 9},
		"no end of it": {Kind: fakevpsa.Hang},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newArray(t, fakevpsa.Options{})
				must(0, a.Change(func(s *fakevpsa.Settings) { s.Software = "22.06-9" }))(t)
				w := &wire{array: a}
				c := newClient(t, w)
				f.Path = "/api/vpsaversion.json"
				fault := must(a.Fail(f))(t)
				look := func(want string) {
					t.Helper()
					before, began := w.count(), time.Now()
					if h := must(c.Health(within(t)))(t); h.Version != want {
						t.Errorf("the version is %q, want %q", h.Version, want)
					}
					if n, took := w.count()-before, time.Since(began); n != 3 || took > 10*time.Second {
						t.Errorf("%d requests in %s", n, took)
					}
				}
				look("22.06-9")
				a.Heal(fault)
				look("22.06-sp1-123")
				must(a.Fail(f))(t)
				look("22.06-sp1-123") // what it said last
			})
		})
	}
}

// TestNoVersionInTime: the caller has given up, and an array that has said nothing of its version is none without one.
func TestNoVersionInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArray(t, fakevpsa.Options{})
		must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Hang, Path: "/api/vpsaversion.json"}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := newClient(t, &wire{array: a}).Health(ctx)
		wantError(t, err, array.ErrTimeout)
	})
}

func TestCreateSendsOptions(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	c := newClient(t, &wire{array: a})
	v := must(c.CreateVolume(within(t), array.NewVolume{
		Name: "v", Size: 3 * array.GiB, Encrypt: true, Compress: true,
		Options: map[string]string{"readaheadkb": "64", "name": "other", "capacity": "1000", "block": "YES"},
	}))(t)
	if v.Name != "v" || v.Size != 3*array.GiB || v.Block || v.Export == "" || v.PoolID != "pool-00000001" || !v.Usable {
		t.Errorf("made %+v", v)
	}
	params := a.Changes("POST /api/volumes.json")[0].Params
	for option, want := range map[string]string{
		"crypt": "YES", "compress": "YES", "dedupe": "NO", "readaheadkb": "64", "attachpolicies": "NO", "nfsrootsquash": "NO", "thin": "YES",
	} {
		if got := params[option]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %s", option, got, want)
		}
	}
}

// TestCreateFinds returns what has the name already, and leaves the comment of what looks different.
func TestCreateFinds(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	c := newClient(t, &wire{array: a})
	if _, err := a.AddVolume(fakevpsa.Volume{Name: "v", Size: 9, Block: true, Pool: "pool-00000001"}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []array.NewVolume{
		{Name: "v", Size: 3 * array.GiB, Comment: "mine"}, {Name: "v", Size: 10 * array.GiB, Block: true, Comment: "mine"},
	} {
		if v := must(c.CreateVolume(within(t), other))(t); v.Size != 9*array.GiB || v.Comment != "" || len(a.Volumes()) != 1 {
			t.Errorf("made %+v", v)
		}
	}
	// The array may have rounded the size.
	v := must(c.CreateVolume(within(t), array.NewVolume{Name: "v", Size: 8 * array.GiB, Block: true, Comment: "mine"}))(t)
	if v.Comment != "mine" {
		t.Errorf("made %+v", v)
	}
}

// TestCreateAsksLittle: of a caller that has looked, a volume takes three requests; what has the name all the
// same is returned, and nothing is doubled.
func TestCreateAsksLittle(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	c := newClient(t, &wire{array: a})
	for _, want := range []map[string]int{
		{"POST /api/volumes.json": 1, "GET /api/volumes.json": 1, "POST /api/volumes/*/update_comment.json": 1},
		{"POST /api/volumes.json": 1, "GET /api/volumes.json": 1},
	} {
		a.ResetCounts()
		v := must(c.CreateVolume(within(t), array.NewVolume{Name: "v", Size: 3 * array.GiB, Comment: "mine", NameFree: true}))(t)
		if v.Comment != "mine" || len(a.Volumes()) != 1 {
			t.Errorf("made %+v, and the array has %d volumes", v, len(a.Volumes()))
		}
		if got := a.Counts(); !maps.Equal(got, want) {
			t.Errorf("the array was asked %v, want %v", got, want)
		}
	}
}

func TestRefusedCommentStopsNothing(t *testing.T) {
	a := newArray(t, fakevpsa.Options{})
	must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Refuse, Path: "/api/volumes/*/update_comment.json", Text: "unknown request"}))(t)
	v := must(newClient(t, &wire{array: a}).CreateVolume(within(t), array.NewVolume{Name: "v", Size: 3 * array.GiB, Comment: "mine"}))(t)
	if v.ID != first {
		t.Errorf("made %+v", v)
	}
}

func TestErrorsOfMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.ChangePool("pool-00000001", func(p *fakevpsa.Pool) { p.Limit = 1000 }); err != nil {
			t.Fatal(err)
		}
		ctx, c := t.Context(), w.client
		volume := func(_ array.Volume, err error) error { return err }
		for _, tt := range []struct {
			name string
			err  error
			want error
		}{
			{"volume", volume(c.Volume(ctx, "volume-00000099")), array.ErrNotFound},
			{"volume without an ID", volume(c.Volume(ctx, "")), array.ErrNotFound},
			{"volume with a path as ID", volume(c.Volume(ctx, "../users")), array.ErrNotFound},
			{"volume by name", volume(c.VolumeNamed(ctx, "on")), array.ErrNotFound},
			{"volume by a name with blanks", volume(c.VolumeNamed(ctx, "one more")), array.ErrNotFound},
			{"grow", volume(c.GrowVolume(ctx, "volume-00000099", 200*array.GiB)), array.ErrNotFound},
			{"grow too far", volume(c.GrowVolume(ctx, first, 1_000*array.GiB)), array.ErrNoRoom},
			{"grow by nothing", volume(c.GrowVolume(ctx, first, 50*array.GiB)), nil},
			{"create too large", volume(c.CreateVolume(ctx, array.NewVolume{Name: "v", Size: 1_000 * array.GiB})), array.ErrNoRoom},
			{"clone of nothing", volume(c.CloneVolume(ctx, array.NewClone{Name: "v", Group: "cg-00000099"})), array.ErrNotFound},
			{"comment on what is gone", c.CommentVolume(ctx, "volume-00000099", "v"), array.ErrNotFound},
			{"delete what is attached", c.DeleteVolume(ctx, first), array.ErrAttached},
			{"delete what has snapshots", c.DeleteVolume(ctx, second), array.ErrHasSnapshots},
			{"delete what is gone", c.DeleteVolume(ctx, "volume-00000099"), nil},
			{"delete a snapshot that is gone", c.DeleteSnapshot(ctx, "snap-00000099"), nil},
			{"snapshot", func() error { _, err := c.Snapshot(ctx, "snap-00000099"); return err }(), array.ErrNotFound},
			{"snapshot of nothing", func() error {
				_, err := c.CreateSnapshot(ctx, array.NewSnapshot{Name: "s", VolumeID: "volume-00000099"})
				return err
			}(), array.ErrNotFound},
			{"change a server in use", func() error {
				_, err := c.EnsureServer(ctx, array.NewServer{Name: "other", IQN: "iqn.2026-11.io.katbox:new"})
				return err
			}(), array.ErrAttached},
			{"server in use, as it is", func() error {
				_, err := c.EnsureServer(ctx, array.NewServer{Name: "other", Address: "10.0.0.8/32"})
				return err
			}(), nil},
			{"delete a server in use", c.DeleteServer(ctx, other), array.ErrAttached},
			{"delete a server that is gone", c.DeleteServer(ctx, "srv-00000099"), nil},
			{"attachments", func() error { _, err := c.Attachments(ctx, "volume-00000099"); return err }(), array.ErrNotFound},
			{"attach what is gone", func() error {
				_, err := c.Attach(ctx, array.NewAttachment{VolumeID: "volume-00000099", ServerID: node})
				return err
			}(), array.ErrNotFound},
			{"attach to what is gone", func() error {
				_, err := c.Attach(ctx, array.NewAttachment{VolumeID: first, ServerID: "srv-00000099"})
				return err
			}(), array.ErrNotFound},
			{"detach what is gone", c.Detach(ctx, "volume-00000099", other), nil},
			{"detach from what is gone", c.Detach(ctx, first, "srv-00000099"), nil},
			{"detach what is not attached", c.Detach(ctx, second, other), nil},
		} {
			wantError(t, tt.err, tt.want)
			if t.Failed() {
				t.Fatal(tt.name)
			}
		}
		if v, _ := w.volume("one"); v.Size != 100 {
			t.Errorf("it has %d GiB", v.Size)
		}
	})
}

// TestTwoWithOneName are on an array where another client does not keep to the rules.
func TestTwoWithOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := answering(t, 200, "application/json", `{"response":{"status":0,
			"volumes":[{"name":"volume-00000001","display_name":"v"},{"name":"volume-00000002","display_name":"v"}],
			"servers":[{"name":"srv-00000001","display_name":"v"},{"name":"srv-00000002","display_name":"v"}],
			"snapshots":[{"name":"snap-00000001","display_name":"v"},{"name":"snap-00000002","display_name":"v"}],
			"volume":{"name":"volume-00000001","display_name":"v","cg_name":"cg-00000001"}}}`)
		ctx := t.Context()
		_, err := c.CreateVolume(ctx, array.NewVolume{Name: "v", Size: array.GiB})
		wantError(t, err, array.ErrExists)
		wantText(t, err, "volume-00000001 and volume-00000002", `both named "v"`)
		_, err = c.VolumeNamed(ctx, "v")
		wantError(t, err, array.ErrExists)
		_, err = c.CreateSnapshot(ctx, array.NewSnapshot{Name: "v", VolumeID: first})
		wantError(t, err, array.ErrExists)
		_, err = c.EnsureServer(ctx, array.NewServer{Name: "v"})
		wantError(t, err, array.ErrExists)
	})
}

// TestAttachments has one volume on two servers, by iSCSI and by NFS.
func TestAttachments(t *testing.T) {
	w := newWorld(t)
	ctx, c := within(t), w.client
	a := must(c.Attach(ctx, array.NewAttachment{ServerID: other, VolumeID: second, ReadOnly: true}))(t)
	if a.LUN != 1 || a.Target != w.Target() || !a.ReadOnly {
		t.Errorf("attached as %+v", a)
	}
	again := must(c.Attach(ctx, array.NewAttachment{ServerID: other, VolumeID: second}))(t)
	if again != a || len(w.Changes("POST /api/servers/*/volumes.json")) != 2 {
		t.Errorf("attached again as %+v", again)
	}
	nas := must(c.CreateVolume(ctx, array.NewVolume{Name: "nas", Size: array.GiB}))(t)
	if a := must(c.Attach(ctx, array.NewAttachment{ServerID: node, VolumeID: nas.ID, NFS: true}))(t); a.ServerID != node {
		t.Errorf("attached as %+v", a)
	}
	must(c.Attach(ctx, array.NewAttachment{ServerID: node, VolumeID: second}))(t)
	if all := must(c.Attachments(ctx, second))(t); len(all) != 2 {
		t.Errorf("the attachments are %+v", all)
	}
	if v := must(c.Volume(ctx, second))(t); !slices.Equal(v.Servers, []string{other, node}) {
		t.Errorf("the servers are %q", v.Servers)
	}
}

func TestSnapshots(t *testing.T) {
	w := newWorld(t)
	var all []array.Snapshot
	err := w.client.Snapshots(within(t), func(page []array.Snapshot) error {
		all = append(all, page...)
		return nil
	})
	if err != nil || len(all) != 1 || all[0].VolumeID != second || all[0].Size != 100*array.GiB || !all[0].Usable || all[0].Created.IsZero() {
		t.Errorf("the snapshots are %+v, %v", all, err)
	}
	if s := must(w.client.Snapshot(within(t), snap))(t); s.ID != snap || s.Group != group2 {
		t.Errorf("the snapshot is %+v", s)
	}
}

// TestSubmittedForLong is a clone that the array is not done with when the call has to end.
func TestSubmittedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Method: http.MethodPost, Delay: 5 * time.Minute, Times: 1}))(t)
		n := array.NewClone{Name: "new", Group: group2}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.client.CloneVolume(ctx, n)
		wantError(t, err, array.ErrUncertain)
		_, err = w.client.VolumeNamed(t.Context(), "new")
		wantError(t, err, array.ErrUncertain)
		time.Sleep(5 * time.Minute)
		must(w.client.CloneVolume(t.Context(), n))(t)
		if _, count := w.volume("new"); count != 1 {
			t.Errorf("%d volumes", count)
		}
	})
}

// TestGrowTogether has two calls for one volume at the same time.
func TestGrowTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Delay, Delay: time.Second}))(t)
		var all sync.WaitGroup
		for _, to := range []array.Size{150 * array.GiB, 150 * array.GiB, 120 * array.GiB} {
			all.Go(func() {
				v, err := w.client.GrowVolume(t.Context(), first, to)
				if err != nil || v.Size < to {
					t.Errorf("grew to %s, %v", v.Size, err)
				}
			})
		}
		all.Wait()
		if v, _ := w.volume("one"); v.Size > 150 {
			t.Errorf("it has %d GiB", v.Size)
		}
	})
}

// TestAnotherClient knows what one before it left open.
func TestAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.client.(*client)
		config := Config{Endpoint: c.endpoint, Token: "token", Transport: w.wire}
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Path: "/api/volumes/*/expand.json", Delay: 20 * time.Second, Times: 1}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.GrowVolume(ctx, first, 150*array.GiB)
		wantError(t, err, array.ErrUncertain)
		must(must(New(config))(t).GrowVolume(t.Context(), first, 150*array.GiB))(t)
		time.Sleep(time.Hour)
		w.Settle()
		if v, _ := w.volume("one"); v.Size != 150 {
			t.Errorf("it has %d GiB", v.Size)
		}
		if n := len(w.Changes("POST /api/volumes/*/expand.json")); n != 1 {
			t.Errorf("%d expansions", n)
		}
	})
}

// TestDeletedBehindOurBack: what another client deletes is gone for this one.
func TestDeletedBehindOurBack(t *testing.T) {
	w := newWorld(t)
	if err := w.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Detach(within(t), first, other); err != nil {
		t.Error(err)
	}
	if err := w.client.DeleteVolume(within(t), first); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(len(w.Volumes())); got != "1" {
		t.Errorf("%s volumes", got)
	}
}

// TestSubmitted is a clone that the array is done with after half a minute, in one call.
func TestSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Method: http.MethodPost, Delay: 30 * time.Second, Times: 1}))(t)
		v := must(w.client.CloneVolume(t.Context(), array.NewClone{Name: "new", Group: group2, SnapshotID: snap, Comment: "mine"}))(t)
		if v.Size != 100*array.GiB || v.Comment != "mine" {
			t.Errorf("made %+v", v)
		}
	})
}

// TestMadeMeanwhile: right before the request another one for the same name is carried out.
func TestMadeMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.wire.do = func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodPost {
			if _, err := w.AddVolume(fakevpsa.Volume{Name: "new", Size: 7, Pool: "pool-00000001", Comment: "mine"}); err != nil {
				t.Error(err)
			}
		}
		return pass()
	}
	must(w.client.CreateVolume(within(t), array.NewVolume{Name: "new", Size: 7 * array.GiB, Comment: "mine"}))(t)
	if _, n := w.volume("new"); n != 1 {
		t.Errorf("%d volumes", n)
	}
}

// TestLateDetach comes after a second one was answered, and must not take the next attachment away: neither one of this
// process, which waits, nor one of the next, since until then the caller does not hear that the volume is detached.
func TestLateDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Method: http.MethodPost, Delay: 9 * time.Second, Times: 1}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, w.client.Detach(ctx, first, other), array.ErrUncertain)
		for range 2 {
			err := w.client.Detach(t.Context(), first, other)
			wantError(t, err, array.ErrUncertain)
			wantText(t, err, "an earlier request to detach volume "+first+", server "+other)
			if n := len(w.Attachments()); n != 0 {
				t.Errorf("%d attachments", n)
			}
		}
		time.Sleep(time.Minute) // the array has given up on the first
		if err := w.client.Detach(t.Context(), first, other); err != nil {
			t.Error(err)
		}
		must(w.client.Attach(t.Context(), array.NewAttachment{VolumeID: first, ServerID: other}))(t)
		time.Sleep(time.Hour)
		w.Settle()
		if n := len(w.Attachments()); n != 1 {
			t.Errorf("%d attachments", n)
		}
	})
}

// TestLateAttach comes after a second one was answered, and after a detach: until then that is not said to be made, since the next
// node may write to the volume then.
func TestLateAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(w.client.Attach(t.Context(), array.NewAttachment{VolumeID: first, ServerID: other}))(t)
		if err := w.client.Detach(t.Context(), first, other); err != nil {
			t.Fatal(err)
		}
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Method: http.MethodPost, Delay: 9 * time.Second, Times: 1}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.client.Attach(ctx, array.NewAttachment{VolumeID: first, ServerID: other})
		wantError(t, err, array.ErrUncertain)
		must(w.client.Attach(t.Context(), array.NewAttachment{VolumeID: first, ServerID: other}))(t)
		err = w.client.Detach(t.Context(), first, other)
		wantError(t, err, array.ErrUncertain)
		wantText(t, err, "an earlier request to attach volume "+first+", server "+other)
		time.Sleep(time.Minute)
		w.Settle()
		if err := w.client.Detach(t.Context(), first, other); err != nil || len(w.Attachments()) != 0 {
			t.Errorf("%v, %d attachments", err, len(w.Attachments()))
		}
	})
}

// TestDoubtOfARequestThatWaited for its turn is as long as that of one that did not.
func TestDoubtOfARequestThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const slow = 25 * time.Second
		var once, lost sync.Once
		w.wire.do = func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			switch {
			case r.Method == http.MethodPost:
				failed := false
				lost.Do(func() { <-r.Context().Done(); failed = true })
				if failed {
					return nil, r.Context().Err()
				}
			case strings.HasSuffix(r.URL.Path, "/servers.json"):
				// The look is over, and slow calls take all turns before the request.
				once.Do(func() {
					for range defaultInflight {
						go func() { _ = w.client.Volumes(t.Context(), func([]array.Volume) error { return nil }) }()
					}
					synctest.Wait()
				})
			default:
				time.Sleep(slow)
			}
			return pass()
		}
		wantError(t, w.client.Detach(t.Context(), first, other), array.ErrUncertain)
		err := w.client.Detach(t.Context(), first, other)
		wantError(t, err, array.ErrUncertain)
		wantText(t, err, "an earlier request to detach")
	})
}

// TestSnapshotThatTheArrayDoubts: it says that a request timed out, and may take the snapshot yet.
func TestSnapshotThatTheArrayDoubts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.do = func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if r.Method != http.MethodPost {
				return pass()
			}
			return &http.Response{
				StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
				Body: io.NopCloser(strings.NewReader(`{"response":{"status":8,"message":"Request timed out"}}`)),
			}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.client.CreateSnapshot(ctx, array.NewSnapshot{Name: "s2", VolumeID: second})
		wantError(t, err, array.ErrUncertain)
		wantError(t, w.client.Snapshots(t.Context(), func([]array.Snapshot) error { return nil }), array.ErrUncertain)
	})
}

// TestLateSnapshot comes after its call has ended; until then no list is said to be complete.
func TestLateSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := array.NewSnapshot{Name: "s2", VolumeID: second}
		list := func() (names []string, err error) {
			err = w.client.Snapshots(t.Context(), func(page []array.Snapshot) error {
				for _, s := range page {
					names = append(names, s.Name)
				}
				return nil
			})
			return names, err
		}
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Method: http.MethodPost, Delay: 9 * time.Second, Times: 1}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.client.CreateSnapshot(ctx, n)
		wantError(t, err, array.ErrUncertain)
		names, err := list()
		wantError(t, err, array.ErrUncertain)
		wantText(t, err, "s2")
		if len(names) != 1 {
			t.Errorf("the snapshots are %q", names)
		}
		time.Sleep(9 * time.Second)
		if names, err := list(); err != nil || len(names) != 2 {
			t.Errorf("the snapshots are %q, %v", names, err)
		}
		must(w.client.CreateSnapshot(t.Context(), n))(t)
	})
}

// TestSubmittedForEver is a clone that the array drops, in a call without a deadline.
func TestSubmittedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		must(w.Fail(fakevpsa.Fault{Kind: fakevpsa.Submit, Method: http.MethodPost, Times: 1}))(t)
		_, err := w.client.CloneVolume(t.Context(), array.NewClone{Name: "new", Group: group2})
		wantError(t, err, array.ErrUncertain)
	})
}
