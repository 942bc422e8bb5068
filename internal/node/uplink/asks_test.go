package uplink

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// taken returns the IDs that a gateway takes.
func taken(a *asks, l *listener) (ids []string) {
	for _, word := range a.take(l) {
		ids = append(ids, word.ID)
	}
	return ids
}

func wantTaken(t *testing.T, when string, a *asks, l *listener, want ...string) {
	t.Helper()
	if got := taken(a, l); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", when, got, want)
	}
}

func described(records ...volume.Record) (all []volume.Description) {
	for _, r := range records {
		all = append(all, volume.Description{Record: r})
	}
	return all
}

// isSet reports whether a channel has a value, and takes it.
func isSet(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("test", "")
		a := newAsks(30*time.Second, m)
		one, two := record("v1", "a"), record("v2", "b")
		if a.add(one) {
			t.Error("it asks, and nobody listens")
		}
		first := a.open("gateway-1")
		if !isSet(a.missing) {
			t.Error("what is awake is not looked at when a gateway begins to listen")
		}
		wantTaken(t, "nothing was asked while it listens", a, first)

		for range 2 {
			if !a.add(one) {
				t.Error("it does not ask, though a gateway listens")
			}
		}
		retained, foreign, known := record("v3", "c"), record("v4", ""), record("v5", "e")
		retained.Phase, known.Owner.Verdict = volume.Retained, volume.Confirmed
		for _, r := range []volume.Record{retained, foreign, known} {
			a.add(r)
		}
		wantTaken(t, "once", a, first, "v1")
		time.Sleep(30 * time.Second)
		if a.waiting() {
			t.Error("it is not late yet")
		}
		a.compare(described(one, two))
		wantTaken(t, "what is missing, not what was just asked", a, first, "v2")
		time.Sleep(time.Second)
		if !a.waiting() {
			t.Error("an answer is late")
		}

		second := a.open("gateway-2")
		a.compare(described(one, two, retained))
		wantTaken(t, "a gateway that did not answer", a, first)
		wantTaken(t, "the other gateway", a, second, "v1")
		a.answered("v1")
		a.answered("v1")
		a.close(second)
		if a.compare(described(one, two)); !slices.Equal(taken(a, first), []string{"v1"}) {
			t.Error("a volume whose answer did not reach its record is asked about again")
		}
		a.close(first)
		third := a.open("gateway-1")
		a.compare(described(one, two))
		wantTaken(t, "another connection to the only gateway", a, third, "v1", "v2")

		// The volumes are retained, and their pods gone.
		time.Sleep(31 * time.Second)
		a.compare(described(retained))
		wantTaken(t, "nothing is awake", a, third)
		if a.waiting() || len(a.sent) > 0 {
			t.Errorf("there is still something to wait for: %v", a.sent)
		}

		// No gateway takes it in time.
		a.add(one)
		isSet(a.missing)
		time.Sleep(31 * time.Second)
		if !a.waiting() {
			t.Error("an ask that nobody takes is not looked at")
		}
		wantTaken(t, "stale", a, third)
		if !isSet(a.missing) {
			t.Error("a stale ask is forgotten")
		}
		metricstest.Of(t, m).Want(t, "asks", metricstest.Values{
			`katbox_gateway_asks_total{outcome="sent"}`: 6, `katbox_gateway_asks_total{outcome="answered"}`: 1,
		})
	})
}

// TestAsksAreBounded: whatever does not fit is found again by its volume.
func TestAsksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("test", "")
		a := newAsks(30*time.Second, m)
		l := a.open("gateway")
		isSet(a.missing)
		for i := range mostAsks + 10 {
			a.add(record(fmt.Sprint("v", i), "a"))
		}
		if len(a.queue) != mostAsks || len(a.queued) != mostAsks || !isSet(a.missing) {
			t.Errorf("%d asks wait, of %d volumes", len(a.queue), len(a.queued))
		}
		metricstest.Of(t, m).Want(t, "too many", metricstest.Values{`katbox_gateway_asks_total{outcome="dropped"}`: 10})
		for i := 0; isSet(l.ready); i++ {
			if got := a.take(l); len(got) > mostAsksInLine || len(got) > 0 && got[0].ID != fmt.Sprint("v", i*mostAsksInLine) {
				t.Fatalf("%d asks in a line, the first is %v", len(got), got[0])
			}
		}
		if len(a.queue) > 0 || len(a.queued) > 0 || len(a.sent) != mostAsks {
			t.Errorf("%d wait, %d were sent", len(a.queue), len(a.sent))
		}
		for i := range 10 {
			a.add(record(fmt.Sprint("w", i), "a"))
		}
		if got := len(a.take(l)); got != 10 || len(a.sent) != mostAsks {
			t.Errorf("%d are taken, and %d remembered", got, len(a.sent))
		}
	})
}

// lines are what a summary writes.
func (s *summary) lines(t *testing.T, body *bytes.Buffer) (all []api.Summary) {
	t.Helper()
	for text := range strings.Lines(body.String()) {
		if len(text) > 1<<20 {
			t.Errorf("a line has %d bytes", len(text))
		}
		var line api.Summary
		must(t, json.Unmarshal([]byte(text), &line))
		all = append(all, line)
	}
	body.Reset()
	return all
}

// TestSummary: the first lines say all, later ones what has changed, and there is a sign of life.
func TestSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		volumes := &fakeVolumes{}
		u := &Uplink{cfg: Config{Volumes: volumes}, pace: usualPace}
		w := httptest.NewRecorder()
		s := newSummary(&connection{u: u}, w)
		tell := func() []api.Summary {
			t.Helper()
			if !s.tellHoldings(t.Context()) {
				t.Error("the gateway does not take it")
			}
			return s.lines(t, w.Body)
		}
		volumes.err = volume.ErrUnavailable
		if got := tell(); len(got) != 1 || got[0].Full || len(got[0].Holdings) > 0 {
			t.Errorf("before it is known: %+v, want a sign of life", got)
		}
		volumes.err = nil
		if got := tell(); len(got) != 1 || !got[0].Full || len(got[0].Holdings) > 0 {
			t.Errorf("%+v, want one full line of nothing", got)
		}
		at := time.Now()
		for i := range mostHoldings + 1 {
			volumes.holdings = append(volumes.holdings, volume.Holding{Namespace: fmt.Sprintf("%s-%d", strings.Repeat("n", 57), i),
				NamespaceUID: strings.Repeat("u", 36), Verdict: volume.Confirmed, Volumes: 1 << 30, Newest: at.Add(time.Duration(i)), Oldest: at})
		}
		got := tell()
		count := 0
		for _, line := range got {
			count += len(line.Holdings)
			if line.Full {
				t.Error("a change is called full")
			}
		}
		if count != mostHoldings || len(got) != mostHoldings/mostHoldingsInLine {
			t.Errorf("%d holdings in %d lines", count, len(got))
		}
		volumes.holdings = volumes.holdings[:2:2]
		tell()
		volumes.holdings[1].Volumes = 5
		if got := tell(); len(got) != 1 || len(got[0].Holdings) != 1 || got[0].Holdings[0].Volumes != 5 {
			t.Errorf("%+v, want the change", got)
		}
		if got := tell(); len(got) > 0 {
			t.Errorf("%+v, and nothing has changed", got)
		}
		silent := 0
		for ; len(s.lines(t, w.Body)) == 0; silent++ {
			time.Sleep(u.pace.changes)
			must(t, map[bool]error{false: fmt.Errorf("not taken")}[s.tellHoldings(t.Context())])
		}
		if took := time.Duration(silent) * u.pace.changes; took > u.pace.quiet {
			t.Errorf("a sign of life after %v", took)
		}
	})
}
