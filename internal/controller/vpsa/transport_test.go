package vpsa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

func startArray(t *testing.T, l fakevpsa.Listen) *fakevpsa.Running {
	t.Helper()
	r, err := fakevpsa.Start(fakevpsa.Options{}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestTLS(t *testing.T) {
	r := startArray(t, fakevpsa.Listen{TLS: true})
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   error
	}{
		{"of an unknown CA", func(*Config) {}, array.ErrTLS},
		{"of the given CA", func(c *Config) { c.CA = r.CA() }, nil},
		{"not checked", func(c *Config) { c.InsecureSkipVerify = true }, nil},
		{"spoken to without TLS", func(c *Config) { c.Endpoint = strings.Replace(r.URL, "https", "http", 1) }, array.ErrBadAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := Config{Endpoint: r.URL, Token: "token", Log: logr.Discard()}
			tt.change(&config)
			c := must(New(config))(t)
			_, err := c.Health(within(t))
			wantError(t, err, tt.want)
			if tt.want != nil {
				// Nothing was sent, so nothing is open.
				err = c.DeleteVolume(within(t), first)
				wantError(t, err, tt.want)
				if errors.Is(err, array.ErrUncertain) {
					t.Errorf("it is uncertain: %v", err)
				}
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var followed atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer thief.Close()
	s := httptest.NewServer(http.RedirectHandler(thief.URL+"/api/pools.json", http.StatusFound))
	defer s.Close()
	c := must(New(Config{Endpoint: s.URL, Token: "token"}))(t)
	_, err := c.Health(within(t))
	wantError(t, err, array.ErrBadAnswer)
	wantText(t, err, strings.TrimPrefix(thief.URL, "http://"))
	if followed.Load() {
		t.Error("the redirect was followed")
	}
}

func TestNothingListens(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	c := must(New(Config{Endpoint: s.URL, Token: "token"}))(t)
	_, err := c.CreateVolume(within(t), array.NewVolume{Name: "v", Size: array.GiB})
	wantError(t, err, array.ErrUnreachable)
	if errors.Is(err, array.ErrUncertain) || errors.Is(err, array.ErrTimeout) {
		t.Errorf("the error is %v", err)
	}
}

// answering is a client whose requests all get one answer.
func answering(t *testing.T, code int, kind, body string) array.Array {
	t.Helper()
	return newClient(t, &wire{do: func(_ int, r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}})
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		code int
		body string
		want error
		text string
	}{
		{"a page", 200, "<html><body>Please wait</body></html>", array.ErrBadAnswer, "text/html"},
		{"nothing", 200, "", array.ErrBadAnswer, "EOF"},
		{"half of it", 200, `{"response":{"status":0,"volume":{"na`, array.ErrBadAnswer, ""},
		{"something else", 200, `{"hello":"world"}`, array.ErrBadAnswer, "no response"},
		{"a list", 200, `[]`, array.ErrBadAnswer, ""},
		{"no status", 200, `{"response":{"message":"what"}}`, array.ErrBadAnswer, "no response"},
		{"a status that is none", 200, `{"response":{"status":"x"}}`, array.ErrBadAnswer, "number"},
		{"a bad gateway", 502, `{"response":{"status":0}}`, array.ErrBadAnswer, "HTTP 502"},
		{"unavailable", 503, "", array.ErrBadAnswer, "HTTP 503"},
		{"forbidden", 403, "", array.ErrCredentials, "HTTP 403"},
		{"a wrong key", 200, `{"response":{"status":5,"status-msg":"Invalid credentials."}}`, array.ErrCredentials, "code 5: Inv"},
		{"an old session", 200, `{"response":{"status":"1793","status_msg":"expired"}}`, array.ErrCredentials, "1793"},
		{"no such volume", 200, `{"response":{"status":10081,"message":"gone"}}`, array.ErrNotFound, "10081: gone"},
		{"no such server", 200, `{"response":{"status":10086}}`, array.ErrNotFound, "10086"},
		{"no object", 200, `{"response":{"status":0,"volume":null}}`, array.ErrNotFound, ""},
		{"errors in a list", 200, `{"response":{"status":7,"errors":[{"message":"not enough space"}]}}`, array.ErrNoRoom, "not enough space"},
		{"not found, with an envelope", 404, `{"response":{"status":9,"message":"no such thing"}}`, array.ErrUncertain, "code 9"},
		{"not found, without status", 404, `{"response":{"status":0}}`, array.ErrBadAnswer, "HTTP 404"},
		{"exists", 200, `{"response":{"status":8,"message":"Name already exists"}}`, array.ErrExists, ""},
		{"attached", 200, `{"response":{"status":8,"message":"Volume is attached"}}`, array.ErrAttached, ""},
		{"snapshots", 200, `{"response":{"status":8,"message":"Volume has snapshots"}}`, array.ErrHasSnapshots, ""},
		{"busy", 200, `{"response":{"status":8,"message":"Volume is migrating"}}`, array.ErrBusy, ""},
		{"timed out", 200, `{"response":{"status":8,"message":"Request timed out"}}`, array.ErrUncertain, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kind := "application/json"
				if strings.HasPrefix(tt.body, "<") {
					kind = "text/html"
				}
				_, err := answering(t, tt.code, kind, tt.body).Volume(t.Context(), first)
				wantError(t, err, tt.want)
				wantText(t, err, tt.text, first)
			})
		})
	}
}

// TestOddValues reads numbers as strings, missing values, and fields that nobody knows.
func TestOddValues(t *testing.T) {
	c := answering(t, 200, "application/json", `{"other":[{}],"response":{"unknown":{"deep":[1,2]},
		"volume":{"name":"volume-00000001","display_name":17,
		"virtual_capacity":"200","server_ext_names":"srv-00000001, srv-00000002","has_snapshots":"YES","nfs_export_path":null,
		"data_type":"BLOCK","status":"In-use","comment":{"odd":1},"cg_name":"cg-00000001","pool_name":"p"},"status":"0"}}`)
	v, err := c.Volume(t.Context(), first)
	want := fmt.Sprintf("%+v", array.Volume{
		ID: first, Name: "17", Group: "cg-00000001", PoolID: "p", Size: 200 * array.GiB, Block: true, Status: "In-use", Usable: true,
		Servers: []string{other, node}, HasSnapshots: true,
	})
	if got := fmt.Sprintf("%+v", v); err != nil || got != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

// TestNumbersAsStrings does everything on an array that writes all numbers as strings and tells no IDs.
func TestNumbersAsStrings(t *testing.T) {
	for _, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if err := w.Change(func(s *fakevpsa.Settings) { s.Strings, s.Terse, s.Message = true, true, "errors" }); err != nil {
					t.Fatal(err)
				}
				if err := op.do(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				if err := op.want(w); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestHugeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		huge := `{"response":{"status":0,"junk":"` + strings.Repeat("x", 1<<20) + `"}}`
		c := answering(t, 200, "application/json", huge)
		if _, err := c.Volume(t.Context(), first); !errors.Is(err, array.ErrNotFound) {
			t.Errorf("below the limit: %v", err)
		}
		c.(*client).largest = 1 << 20
		_, err := c.Volume(t.Context(), first)
		wantError(t, err, array.ErrBadAnswer)
		wantText(t, err, errTooLong.Error())
	})
}

// TestArrayIsTold reads the time that the array gets: five seconds less than the call.
func TestArrayIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		a := newArray(t, fakevpsa.Options{})
		w := &wire{array: a, do: func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if r.Method == http.MethodGet {
				told = append(told, r.URL.Query().Get("timeout"))
				return pass()
			}
			raw, err := io.ReadAll(r.Body)
			var body struct{ Timeout int }
			if err == nil {
				err = json.Unmarshal(raw, &body)
			}
			if err != nil {
				t.Error(err)
			}
			told = append(told, fmt.Sprint(body.Timeout))
			r.Body = io.NopCloser(bytes.NewReader(raw))
			return pass()
		}}
		c := newClient(t, w)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must(c.CreateVolume(ctx, array.NewVolume{Name: "v", Size: array.GiB}))(t)
		must(c.GrowVolume(t.Context(), first, 2*array.GiB))(t)
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		must(c.Volume(short, first))(t)
		if got, want := strings.Join(told, " "), "55 55 55 175 10 175 1"; got != want {
			t.Errorf("the array was told %s seconds, want %s", got, want)
		}
	})
}

func TestHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArray(t, fakevpsa.Options{})
		must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Hang}))(t)
		c := newClient(t, &wire{array: a})
		began := time.Now()
		_, err := c.Health(t.Context())
		wantError(t, err, array.ErrTimeout)
		if took := time.Since(began); took != defaultTimeout {
			t.Errorf("it took %v, want %v", took, defaultTimeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Health(ctx)
		wantError(t, err, context.Canceled)
		if errors.Is(err, array.ErrUnreachable) {
			t.Errorf("a cancelled call says that the array is unreachable: %v", err)
		}
	})
}

func TestReadingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wire.do = func(n int, _ *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if n < readings {
				return nil, errBroken
			}
			return pass()
		}
		must(w.client.Volume(t.Context(), first))(t)
		w.wire.do = func(int, *http.Request, func() (*http.Response, error)) (*http.Response, error) {
			return nil, errBroken
		}
		w.wire.calls = nil
		_, err := w.client.Volume(t.Context(), first)
		wantError(t, err, array.ErrUnreachable)
		if n := w.wire.count(); n != readings {
			t.Errorf("%d requests, want %d", n, readings)
		}
	})
}

// TestInflight has more calls than may be in flight.
func TestInflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArray(t, fakevpsa.Options{})
		release := make(chan struct{})
		var flying atomic.Int64
		w := &wire{array: a, do: func(_ int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error) {
			if !strings.Contains(r.URL.Path, "servers") {
				return pass()
			}
			flying.Add(1)
			defer flying.Add(-1)
			<-release
			return pass()
		}}
		c := newClient(t, w)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := c.Servers(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := flying.Load(); n != 4 {
			t.Errorf("%d calls are in flight, want 4", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Servers(ctx)
		wantError(t, err, array.ErrTimeout)
		wantText(t, err, "waiting for other calls")
		must(c.Health(t.Context()))(t) // it says that the array answers, however busy that is
		close(release)
		all.Wait()
	})
}

// counted is what Metrics was told.
type counted struct {
	mu    sync.Mutex
	lines []string
}

func (c *counted) Called(method, pattern, outcome string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprint(method, " ", pattern, " ", outcome, " ", took))
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newArray(t, fakevpsa.Options{})
		must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Delay, Delay: time.Second}))(t)
		var m counted
		c := must(New(Config{Endpoint: "http://metrics", Token: "token", Transport: a.Transport(), Metrics: &m}))(t)
		_, err := c.Volume(t.Context(), first)
		wantError(t, err, array.ErrNotFound)
		c = must(New(Config{Endpoint: "http://metrics", Token: "wrong", Transport: a.Transport(), Metrics: &m}))(t)
		_, err = c.Servers(t.Context())
		wantError(t, err, array.ErrCredentials)
		want := "GET volumes/{id} refused 1s\nGET servers credentials 1s"
		if got := strings.Join(m.lines, "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestSecretsAreNowhere looks for the access key and the CHAP secret in all that is logged, returned as an
// error or printed, on an array that repeats the key in its errors.
func TestSecretsAreNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const token, secret = "ACCESS-KEY-1234567890", "CHAP-SECRET-12"
		a := newArray(t, fakevpsa.Options{Settings: fakevpsa.Settings{Token: token, CHAPSecret: secret}})
		var all strings.Builder
		log := funcr.New(func(prefix, args string) { fmt.Fprintln(&all, prefix, args) }, funcr.Options{Verbosity: 10})
		config := Config{Endpoint: "http://secrets", Token: token, Log: log, Transport: a.Transport()}
		c := must(New(config))(t)
		h := must(c.Health(t.Context()))(t)
		if h.CHAP.Secret != secret {
			t.Errorf("the secret is %q", h.CHAP.Secret)
		}
		must(a.Fail(fakevpsa.Fault{Kind: fakevpsa.Refuse, Text: "the key " + token + " may not do that", Times: 1}))(t)
		_, err := c.Volume(t.Context(), first)
		wantText(t, err, "the key (hidden) may not do that")
		fmt.Fprintln(&all, err)
		for _, fault := range []fakevpsa.Fault{
			{Kind: fakevpsa.LoseAnswer}, {Kind: fakevpsa.HTML, Text: token}, {Kind: fakevpsa.HTTP, Text: token},
		} {
			fault.Times = readings
			must(a.Fail(fault))(t)
			_, err := c.Health(t.Context())
			fmt.Fprintln(&all, err)
		}
		config.Token = " two " + token
		_, err = New(config)
		fmt.Fprintln(&all, err)
		_, err = New(Config{Endpoint: "https://user:" + token + "@host\x7f", Token: token})
		fmt.Fprintln(&all, err)
		_, err = New(Config{Endpoint: "https://user:" + token + "@host", Token: token})
		fmt.Fprintln(&all, err)
		held := struct{ C array.Array }{c}
		for _, thing := range []any{c, &c, held, &held, config, &config, h, &h, h.CHAP, []any{c, config, h}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
				fmt.Fprintf(&all, verb+"\n", thing)
			}
			log.Info("seen", "thing", thing)
		}
		for _, thing := range []any{config.Token, h} {
			text, err := json.Marshal(thing)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(&all, "%s\n", text)
		}
		for _, hidden := range []string{token, secret, fmt.Sprintf("%x", token), fmt.Sprintf("%x", secret)} {
			if strings.Contains(all.String(), hidden) {
				for line := range strings.Lines(all.String()) {
					if strings.Contains(line, hidden) {
						t.Errorf("a secret is in %s", line)
					}
				}
			}
		}
		if !strings.Contains(all.String(), "vcontrollers") || !strings.Contains(all.String(), "CHAP user") {
			t.Errorf("the test sees too little:\n%s", all.String())
		}
	})
}

func TestNewChecks(t *testing.T) {
	for _, tt := range []struct {
		config Config
		text   string
	}{
		{Config{Token: "t"}, "http://"},
		{Config{Endpoint: "ftp://host", Token: "t"}, "http://"},
		{Config{Endpoint: "https://host/api", Token: "t"}, "nothing else"},
		{Config{Endpoint: "https://u:p@host", Token: "t"}, "nothing else"},
		{Config{Endpoint: "https://host"}, "key is missing"},
		{Config{Endpoint: "https://host", Token: "a\nb"}, "blanks"},
		{Config{Endpoint: "https://host", Token: "t", CA: []byte("x")}, "no PEM certificate"},
		{Config{Endpoint: "https://host", Token: "t", Timeout: -1}, "negative"},
	} {
		_, err := New(tt.config)
		wantText(t, err, tt.text)
	}
	if _, err := New(Config{Endpoint: "https://[fd00::1]:8443/", Token: "token\n"}); err != nil {
		t.Error(err)
	}
}
