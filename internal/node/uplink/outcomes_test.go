package uplink

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/outcome"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/uplinktest"
)

// takes takes in outcomes.
type takes struct {
	mu    sync.Mutex
	taken []outcome.Ending
	// knows: the node knows better. err is what it answers.
	knows bool
	err   error
}

func (t *takes) Take(_ context.Context, e outcome.Ending) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.knows || t.err != nil {
		return false, t.err
	}
	t.taken = append(t.taken, e)
	return true, nil
}

func (t *takes) set(do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do()
}

// TestOutcomes: what a gateway says is checked as a whole, and taken in unless the node knows better.
func TestOutcomes(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	s := newScene(t, ca)
	takes := &takes{}
	s.cfg.Outcomes = takes
	s.start(g.port())
	n := next(t, "node", nodes)
	many := strings.Repeat(`,"a"`, outcome.MostVolumes)
	item := `{"podUID":"u1","outcome":"Failed","volumes":["scratch","more"]}`
	for name, body := range map[string]string{
		"no list of outcomes": `[]`, "unexpected EOF": `{"items":[` + item,
		"neither Succeeded":           `{"items":[` + item + `,{"podUID":"u","outcome":"Unknown","volumes":["a"]}]}`,
		`is \"\", which`:              `{"items":[{"podUID":"u","volumes":["a"]}]}`,
		"podUID":                      `{"items":[{"podUID":"../u","outcome":"Failed","volumes":["a"]}]}`,
		"items[1]":                    `{"items":[` + item + `,{"outcome":"Failed"}]}`,
		"cannot be the name":          `{"items":[{"podUID":"u","outcome":"Failed","volumes":["a","../b"]}]}`,
		`has \"\", which`:             `{"items":[{"podUID":"u","outcome":"Failed","volumes":[""]}]}`,
		"volumes are more than 256":   `{"items":[{"podUID":"u","outcome":"Failed","volumes":["a"` + many + `]}]}`,
		"more than the 1000 that":     `{"items":[` + strings.Repeat(item+",", mostAnswers) + item + `]}`,
		"request body too large":      `{"items":[` + strings.Repeat(" ", mostOwners) + item + `]}`,
		"cannot unmarshal number":     `{"items":[{"podUID":1,"outcome":"Failed","volumes":["a"]}]}`,
		"drivers are not as many":     `{"items":[{"podUID":"u","outcome":"Failed","volumes":["a","b"],"drivers":["d"]}]}`,
		"items are no list":           `{"items":{}}`,
		"outcomes: items are no list": `{"items":[{"podUID":"u","outcome":"Failed","volumes":"a"}]}`,
		"the body is no list of outc": ``,
	} {
		if got := n.wantAnswer(t, 400, http.MethodPost, api.OutcomesPath, body); !strings.Contains(got, name) {
			t.Errorf("%s, want %q", got, name)
		}
	}
	n.wantAnswer(t, 405, http.MethodGet, api.OutcomesPath, "")
	if len(takes.taken) > 0 {
		t.Fatalf("taken in: %+v", takes.taken)
	}
	want := []outcome.Ending{
		{Pod: "u1", Outcome: volume.Failed, Volumes: []string{"scratch", "more"}}, {Pod: "u2", Outcome: volume.Succeeded, Volumes: []string{"a"}},
	}
	body := `{"items":[` + item + `,{"podUID":"u2","outcome":"Succeeded","volumes":["a"],"later":"versions"}]}`
	if got := n.wantAnswer(t, 200, http.MethodPost, api.OutcomesPath, body); strings.TrimSpace(got) != `{"taken":2}` {
		t.Errorf("the answer is %s", got)
	}
	if !reflect.DeepEqual(takes.taken, want) {
		t.Errorf("taken in: %+v", takes.taken)
	}
	takes.set(func() { takes.knows = true })
	if got := n.wantAnswer(t, 200, http.MethodPost, api.OutcomesPath, body); strings.TrimSpace(got) != `{"taken":0}` {
		t.Errorf("the answer is %s", got)
	}
	takes.set(func() { takes.err = errors.New("disk on fire") })
	n.wantAnswer(t, 429, http.MethodPost, api.OutcomesPath, body)
}

// TestVolumesOfOtherDrivers: they are left out. An older gateway does not say of which driver a volume is.
func TestVolumesOfOtherDrivers(t *testing.T) {
	const body = `{"items":[{"podUID":"u","outcome":"Failed","volumes":["a","b","c"],"drivers":["x","katbox","x"]},` +
		`{"podUID":"v","outcome":"Failed","volumes":["a"],"drivers":["x"]},{"podUID":"w","outcome":"Failed","volumes":["a","b"]}]}`
	for driver, want := range map[string][][]string{
		"katbox": {{"b"}, nil, {"a", "b"}}, "": {{"a", "b", "c"}, {"a"}, {"a", "b"}},
	} {
		endings, err := readOutcomes(strings.NewReader(body), driver, false)
		var got [][]string
		for _, e := range endings {
			got = append(got, e.Volumes)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("driver %q: %q, %v, want %q", driver, got, err, want)
		}
	}
}

// TestEnds: how a pod ended is asked for and read only if the node keeps it. That of another pod is left out.
func TestEnds(t *testing.T) {
	const body = `{"items":[{"podUID":"u","outcome":"Failed","volumes":["a"],"end":{"uid":"u","phase":"Failed"}},` +
		`{"podUID":"v","outcome":"Failed","volumes":["a"],"end":{"uid":"u"}},{"podUID":"w","outcome":"Failed","volumes":["a"],"end":7}]}`
	for _, ends := range []bool{true, false} {
		ca := uplinktest.NewAuthority(t)
		behave, nodes := good(t, ca.Leaf(t, gatewayName))
		g := startGateway(t, "127.0.0.1:0", behave)
		s, takes := newScene(t, ca), &takes{}
		s.cfg.Outcomes, s.cfg.Ends = takes, ends
		s.start(g.port())
		n := next(t, "node", nodes)
		n.wantAnswer(t, 200, http.MethodPost, api.OutcomesPath, body)
		if got := n.Request.Header.Get(api.HeaderEnds); (got != "") != ends {
			t.Errorf("kept: %t, asked for: %q", ends, got)
		}
		for i, want := range []bool{ends, false, false} {
			if got := takes.taken[i].End; (got != nil) != want {
				t.Errorf("kept: %t: of pod %s: %q", ends, takes.taken[i].Pod, got)
			}
		}
	}
}

// TestNoOutcomes: a node that takes none in says so.
func TestNoOutcomes(t *testing.T) {
	ca := uplinktest.NewAuthority(t)
	behave, nodes := good(t, ca.Leaf(t, gatewayName))
	g := startGateway(t, "127.0.0.1:0", behave)
	newScene(t, ca).start(g.port())
	next(t, "node", nodes).wantAnswer(t, 404, http.MethodPost, api.OutcomesPath, `{"items":[]}`)
}

// TestOutcomesTakeLittleMemory: neither many empty items nor one of many names take much more than the body.
func TestOutcomesTakeLittleMemory(t *testing.T) {
	for _, body := range []string{
		`{"items":[` + strings.Repeat("{},", mostOwners/3-10) + "{}]}",
		`{"items":[{"podUID":"u","outcome":"Failed","volumes":[` + strings.Repeat(`"",`, mostOwners/3-50) + `""]}]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readOutcomes(strings.NewReader(body), "", true)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%.50s is accepted", body)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32*mostOwners {
			t.Errorf("a body of %d bytes takes %d", len(body), took)
		}
	}
}
