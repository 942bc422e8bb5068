package fakevpsa_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

const create = "name=v&capacity=1&pool=pool-00000001"

func fail(t *testing.T, a *fakevpsa.Array, f fakevpsa.Fault) {
	t.Helper()
	if _, err := a.Fail(f); err != nil {
		t.Fatal(err)
	}
}

// TestFaults: what a client sees of each, and whether the volume was made; with and without a network.
func TestFaults(t *testing.T) {
	for _, row := range []struct {
		fault    fakevpsa.Fault
		answered bool
		made     bool
	}{
		{fakevpsa.Fault{Kind: fakevpsa.Delay, Delay: time.Microsecond}, true, true},
		{fakevpsa.Fault{Kind: fakevpsa.DelayAfter, Delay: time.Microsecond}, true, true},
		{fakevpsa.Fault{Kind: fakevpsa.LoseRequest}, false, false},
		{fakevpsa.Fault{Kind: fakevpsa.LoseAnswer}, false, true},
		{fakevpsa.Fault{Kind: fakevpsa.Cut, Bytes: 5}, false, true},
		{fakevpsa.Fault{Kind: fakevpsa.HTTP, Status: 502, Text: "bad gateway"}, false, false},
		{fakevpsa.Fault{Kind: fakevpsa.HTML}, false, false},
		{fakevpsa.Fault{Kind: fakevpsa.Refuse, Status: 5, Text: "Invalid credentials"}, true, false},
		{fakevpsa.Fault{Kind: fakevpsa.Submit}, true, false},
	} {
		for _, network := range []bool{true, false} {
			name := string(row.fault.Kind)
			if network {
				name += " by network"
			}
			t.Run(name, func(t *testing.T) {
				a, c := newArray(t, fakevpsa.Options{})
				if network {
					c.url, c.http = listen(t, a, fakevpsa.Listen{}).URL, http.Client{}
				}
				f := row.fault
				f.Method, f.Path, f.Times = "POST", "/api/volumes.json", 1
				fail(t, a, f)
				_, err := c.send("POST", "/api/volumes.json", create)
				if answered := err == nil; answered != row.answered {
					t.Errorf("answered: %v", err)
				}
				if made := len(a.Volumes()) == 1; made != row.made {
					t.Errorf("made: %v", made)
				}
				if changes := a.Changes("POST /api/volumes.json"); len(changes) == 1 != row.made {
					t.Errorf("changes %+v", changes)
				}
				// It meets one request only.
				c.do("POST", "/api/volumes.json", strings.Replace(create, "=v", "=w", 1))
				if n := a.Counts()["POST /api/volumes.json"]; n != 2 {
					t.Errorf("%d requests counted", n)
				}
				if f := a.Faults(); len(f) != 1 || f[0].Met != 1 {
					t.Errorf("faults %+v", f)
				}
			})
		}
	}
}

func listen(t *testing.T, a *fakevpsa.Array, l fakevpsa.Listen) *fakevpsa.Running {
	t.Helper()
	r, err := a.Listen(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// TestHang: a request that hangs ends when its client gives up.
func TestHang(t *testing.T) {
	for _, kind := range []fakevpsa.Kind{fakevpsa.Hang, fakevpsa.HangAfter} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, c := newArray(t, fakevpsa.Options{})
				fail(t, a, fakevpsa.Fault{Kind: kind})
				c.http.Timeout = time.Hour
				start := time.Now()
				if _, err := c.send("POST", "/api/volumes.json", create); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				if waited := time.Since(start); waited != time.Hour {
					t.Errorf("waited %v", waited)
				}
				if made := len(a.Volumes()) == 1; made != (kind == fakevpsa.HangAfter) {
					t.Errorf("made: %v", made)
				}
			})
		})
	}
}

// TestHangOnTheNetwork: Close ends what hangs.
func TestHangOnTheNetwork(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	r := listen(t, a, fakevpsa.Listen{})
	c.url, c.http = r.URL, http.Client{}
	fail(t, a, fakevpsa.Fault{Kind: fakevpsa.HangAfter})
	done := make(chan error)
	go func() {
		_, err := c.send("POST", "/api/volumes.json", create)
		done <- err
	}()
	for len(a.Volumes()) == 0 {
		time.Sleep(time.Millisecond)
	}
	r.Close()
	if err := <-done; err == nil {
		t.Error("a request that hangs was answered")
	}
}

// TestLatency: delays add up, and other faults come on top.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c := newArray(t, fakevpsa.Options{})
		fail(t, a, fakevpsa.Fault{Kind: fakevpsa.Delay, Delay: time.Second})
		fail(t, a, fakevpsa.Fault{Kind: fakevpsa.Delay, Delay: time.Minute, Path: "/api/volumes.json"})
		fail(t, a, fakevpsa.Fault{Kind: fakevpsa.LoseAnswer, Method: "POST"})
		start := time.Now()
		c.do("GET", "/api/vpsaversion.json", "")
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		if _, err := c.send("POST", "/api/volumes.json", create); err == nil {
			t.Error("answered")
		}
		if waited := time.Since(start); waited != time.Minute+2*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

// TestSubmitted: what was submitted is done later: by Settle, by time, or by requests.
func TestSubmitted(t *testing.T) {
	for name, row := range map[string]struct {
		fault  fakevpsa.Fault
		settle func(*fakevpsa.Array, *client)
	}{
		"settle":   {fakevpsa.Fault{}, func(a *fakevpsa.Array, _ *client) { a.Settle() }},
		"time":     {fakevpsa.Fault{Delay: time.Minute}, func(*fakevpsa.Array, *client) { time.Sleep(time.Minute) }},
		"requests": {fakevpsa.Fault{Requests: 1}, func(_ *fakevpsa.Array, c *client) { c.do("GET", "/api/volumes.json", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, c := newArray(t, fakevpsa.Options{})
				row.fault.Kind, row.fault.Times = fakevpsa.Submit, 1
				fail(t, a, row.fault)
				response, err := c.send("POST", "/api/volumes.json", create)
				if err != nil {
					t.Fatal(err)
				}
				if text, _ := response["message"].(string); response["status"] == 0.0 || !strings.HasPrefix(text, "The request has been submitted") {
					t.Errorf("answer %v", response)
				}
				if a.Submitted() != 1 || len(a.Volumes()) != 0 {
					t.Error("it was done at once")
				}
				row.settle(a, c)
				if a.Submitted() != 0 || len(a.Volumes()) != 1 {
					t.Error("it was not done")
				}
				if changes := a.Changes("POST /api/volumes.json"); len(changes) != 1 || !changes[0].Lost || changes[0].Object != "volume-00000001" {
					t.Errorf("changes %+v", changes)
				}
			})
		})
	}
}

// TestSkip: the second of the matching requests meets the fault, and no other.
func TestSkip(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	fail(t, a, fakevpsa.Fault{Kind: fakevpsa.Refuse, Path: "/api/pools/*.json", Skip: 1, Times: 1})
	for _, want := range []float64{0, 10000, 0} {
		c.ask(want, "GET", "/api/pools/pool-00000001.json", "")
		c.do("GET", "/api/pools.json", "")
	}
	if _, err := a.Fail(fakevpsa.Fault{Kind: "flood"}); err == nil {
		t.Error("a fault of no kind")
	}
}

// TestBehindTheBack: what others do to the array while a client knows it.
func TestBehindTheBack(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	c.do("POST", "/api/volumes.json", create+"&block=YES")
	c.do("POST", "/api/servers.json", "display_name=n&iqn=i")
	c.do("POST", "/api/servers/srv-00000001/volumes.json", "volume_name=volume-00000001")
	if _, err := a.AddSnapshot("volume-00000001", "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.AddVolume(fakevpsa.Volume{Name: "v"}); err == nil {
		t.Error("two volumes have one name")
	}
	changes := len(a.Changes(""))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(a.Remove("srv-00000001"))
	if len(a.Servers())+len(a.Attachments()) != 0 {
		t.Error("the server or its attachment is left")
	}
	must(a.Remove("volume-00000001"))
	if len(a.Volumes())+len(a.Snapshots()) != 0 || a.Pools()[0].Provisioned() != 0 {
		t.Error("the volume or its snapshot is left")
	}
	if a.Remove("volume-00000001") == nil {
		t.Error("removed twice")
	}
	if _, err := a.AddPool(fakevpsa.Pool{Capacity: 5}); err != nil {
		t.Fatal(err)
	}
	portal := func() any {
		for _, one := range c.do("GET", "/api/vcontrollers.json", "")["vcontrollers"].([]any) {
			if controller := one.(map[string]any); controller["state"] == "active" {
				return controller["iscsi_ip"]
			}
		}
		return nil
	}
	before := portal()
	must(a.SwitchController())
	if after := portal(); after == before || after == nil {
		t.Errorf("portal %v, then %v", before, after)
	}
	must(a.Change(func(s *fakevpsa.Settings) { s.Version = "19.08"; s.Token = "another" }))
	c.ask(5, "GET", "/api/vpsaversion.json", "")
	c.token = "another"
	if version := c.do("GET", "/api/vpsaversion.json", "")["version"]; version != "19.08" {
		t.Errorf("version %v", version)
	}
	if n := len(c.do("GET", "/api/pools.json", "")["pools"].([]any)); n != 2 {
		t.Errorf("%d pools", n)
	}
	if len(a.Changes("")) != changes {
		t.Error("what others did is among the changes")
	}
}

// TestTLS: a client that trusts the CA gets an answer, until the array has another.
func TestTLS(t *testing.T) {
	a, c := newArray(t, fakevpsa.Options{})
	if err := a.RenewCA(); !errors.Is(err, fakevpsa.ErrNoTLS) {
		t.Errorf("renewed: %v", err)
	}
	r := listen(t, a, fakevpsa.Listen{TLS: true})
	c.url = r.URL
	trust := func() {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(r.CA())
		c.http = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	}
	trust()
	c.do("GET", "/api/vpsaversion.json", "")
	if err := a.RenewCA(); err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := c.send("GET", "/api/vpsaversion.json", ""); !errors.As(err, &unknown) {
		t.Errorf("error %v", err)
	}
	trust()
	c.do("GET", "/api/vpsaversion.json", "")
}
