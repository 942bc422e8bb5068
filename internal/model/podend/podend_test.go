package podend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func nightly() Pod {
	at := time.Date(2026, 11, 30, 5, 0, 0, 0, time.UTC)
	return Pod{
		Namespace: "ci", Name: "nightly-x7k2p", UID: "0e8dfcf5-8b1f-4a52-9c7b-2f8f9b0c1d2e", Node: "node-1", RestartPolicy: "Never",
		Phase: "Failed", Created: at, Started: at,
		Disruption: &Disruption{Reason: "EvictionByEvictionAPI", Message: "drained"},
		Containers: []Container{{Name: "main", Image: "busybox:1.37", Limits: map[string]string{"memory": "64Mi"}, Restarts: 2,
			State: State{State: Terminated, ExitCode: new(int32(137)), Reason: "OOMKilled", Message: "one\n\ttwo", Finished: at},
			Last:  &State{State: Terminated, ExitCode: new(int32(1))}}},
	}
}

func TestEncode(t *testing.T) {
	want := nightly()
	text := want.Encode()
	got, err := Decode(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s is %+v, %v", text, got, err)
	}
	if bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%q is not one line", text)
	}
}

// TestBounds: whatever a pod says of itself, its end has room, and nothing in it drives a terminal.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, change := range map[string]func(*Pod){
		"message": func(p *Pod) { p.Message = long },
		"all messages": func(p *Pod) {
			for i := range 200 {
				c := Container{Name: fmt.Sprint(i), State: State{Message: long, Reason: long}, Last: &State{Message: long}}
				p.Containers = append(p.Containers, c)
			}
		},
		"containers": func(p *Pod) {
			for range 100_000 {
				p.Containers = append(p.Containers, p.Containers[0])
			}
		},
		"names": func(p *Pod) {
			for range 1000 {
				p.Containers = append(p.Containers, Container{Name: long, Image: long})
			}
		},
		"resources": func(p *Pod) {
			p.Containers[0].Requests = map[string]string{}
			for i := range 10_000 {
				p.Containers[0].Requests[fmt.Sprint(i, long[:1000])] = long[:1000]
			}
		},
		"a year that JSON has not": func(p *Pod) { p.Created = time.Unix(1<<50, 0) },
	} {
		p := nightly()
		change(&p)
		text := p.Encode()
		got, err := Decode(text)
		if err != nil || len(text) > MostBytes || !got.Cut || got.Name != nightly().Name {
			t.Errorf("%s: %d bytes, %v: %.1000s", name, len(text), err, text)
		}
	}
	p := nightly()
	p.Message = "\x1b]0;title\a\x9b31m\u202egnp\x00\xff\r" + "ü\n"
	got, err := Decode(p.Encode())
	if err != nil || got.Message != "\ufffd]0;title\ufffd\ufffd31m\ufffdgnp\ufffd\ufffd\ufffdü\n" {
		t.Errorf("it becomes %q, %v", got.Message, err)
	}
	for cut := range 8 {
		if got := clean("aäöü€", cut); !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("cut at %d it is %q", cut, got)
		}
	}
}

// TestNothingElse: fields that are not on the list are dropped, so that nothing secret is kept.
func TestNothingElse(t *testing.T) {
	p, err := Decode([]byte(`{"name":"a","env":[{"name":"TOKEN","value":"secret"}],"containers":[{"name":"main","args":["secret"]}]}`))
	if err != nil || strings.Contains(string(p.Encode()), "secret") {
		t.Errorf("%s, %v", p.Encode(), err)
	}
	for _, text := range []string{"", "x", `[]`, `{"containers":{}}`, strings.Repeat(" ", MostBytes) + "{}"} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%.20q is taken", text)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(nightly().Encode())
	f.Add([]byte(`{"name":"\u001b]0;x\u0007","containers":[{"name":"a","requests":{"\u202e":"1"},"exitCode":-1}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Decode(text)
		if err != nil {
			return
		}
		once := p.Encode()
		again, err := Decode(once)
		if err != nil || len(once) > MostBytes {
			t.Fatalf("%q: %v", once, err)
		}
		if twice := again.Encode(); !json.Valid(twice) || !bytes.Equal(once, twice) {
			t.Errorf("%q becomes %q", once, twice)
		}
		if strings.ContainsAny(string(once), "\x1b\u009b\u202e") {
			t.Errorf("%q drives a terminal", once)
		}
	})
}
