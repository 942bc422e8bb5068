package ops

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

// node is asked for its health.
type node struct {
	asked  atomic.Int64
	answer atomic.Value
}

func answers(answer func(context.Context) error) *node {
	n := &node{}
	n.answer.Store(answer)
	return n
}

func (n *node) healthy(ctx context.Context) error {
	n.asked.Add(1)
	return n.answer.Load().(func(context.Context) error)(ctx)
}

func hangs(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// TestHealthIsAskedInTheBackground: no matter how many clients ask how often, the node is
// asked once in an interval, and each client gets the answer at once.
func TestHealthIsAskedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := answers(well)
		s := newServer(t, Config{})
		s.watch(n.healthy)
		for range 10_000 {
			s.want(t, "/healthz", 200, "ok")
		}
		if asked := n.asked.Load(); asked != 1 {
			t.Errorf("10,000 probes asked the node %d times, want once", asked)
		}
		time.Sleep(10*askInterval + time.Second)
		if asked := n.asked.Load(); asked != 11 {
			t.Errorf("asked %d times in ten intervals, want 11", asked)
		}
		began := time.Now()
		n.answer.Store(func(context.Context) error { time.Sleep(40 * time.Millisecond); return nil })
		time.Sleep(askInterval - 990*time.Millisecond) // it is being asked
		s.want(t, "/healthz", 200, "ok")
		if waited := time.Since(began) - (askInterval - 990*time.Millisecond); waited != 0 {
			t.Errorf("a probe waited %s for a commit", waited)
		}
		time.Sleep(time.Second)
	})
}

// TestFirstAnswerIsWaitedFor: there is no answer before the node was asked.
func TestFirstAnswerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		s.watch(func(context.Context) error { time.Sleep(time.Second); return nil })
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if answer := s.ask(ctx, http.MethodGet, "/healthz"); answer.Code != 503 || !strings.Contains(answer.Body.String(), "starting") {
			t.Errorf("before the first answer: %d %q", answer.Code, answer.Body)
		}
		s.want(t, "/healthz", 200, "ok")
		if took := time.Since(began); took != time.Second {
			t.Errorf("answered after %s, want a second", took)
		}
	})
}

// TestHealthThatHangsIsUnwell: ten seconds after the question at the latest, with the time
// since when.
func TestHealthThatHangsIsUnwell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := answers(well)
		s := newServer(t, Config{})
		s.watch(n.healthy)
		s.want(t, "/healthz", 200, "ok")
		n.answer.Store(hangs)
		time.Sleep(askInterval)
		since := time.Now()
		time.Sleep(healthLimit - time.Millisecond)
		s.want(t, "/healthz", 200, "ok")
		for range 5 {
			time.Sleep(healthLimit)
			s.want(t, "/healthz", 503, "since "+since.Format(time.RFC3339)+": context deadline exceeded")
		}
		n.answer.Store(well)
		time.Sleep(healthLimit + unwellInterval)
		s.want(t, "/healthz", 200, "ok")
	})
}

// TestAnswerGrowsOld: a node that does not end its question in time is not healthy.
func TestAnswerGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := answers(well)
		s := newServer(t, Config{})
		s.watch(n.healthy)
		s.want(t, "/healthz", 200, "ok")
		since, release := time.Now(), make(chan struct{})
		n.answer.Store(func(context.Context) error { <-release; return nil })
		time.Sleep(maxAge)
		s.want(t, "/healthz", 200, "ok")
		time.Sleep(time.Millisecond)
		s.want(t, "/healthz", 503, "nothing is known since "+since.Format(time.RFC3339))
		close(release)
		synctest.Wait()
		s.want(t, "/healthz", 200, "ok")
	})
}

// TestStoppingEndsTheQuestions: the server does not wait for the answer of a node that stops,
// and does not log it.
func TestStoppingEndsTheQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := newServer(t, Config{Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})})
		n := answers(hangs)
		s.watch(n.healthy)
		synctest.Wait()
		s.Stopping()
		synctest.Wait()
		s.want(t, "/healthz", 503, "stopping")
		time.Sleep(time.Hour)
		if asked := n.asked.Load(); asked != 1 || len(lines) != 0 {
			t.Errorf("asked %d times, log %q; want once and nothing", asked, lines)
		}
	})
}

func TestChangesOfHealthAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		s := newServer(t, Config{Log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})})
		outcomes := []error{nil, nil, errors.New("broken"), errors.New("broken"), nil, nil}
		asked := 0
		n := answers(func(context.Context) error { asked++; return outcomes[min(asked, len(outcomes))-1] })
		s.watch(n.healthy)
		time.Sleep(time.Minute)
		synctest.Wait()
		if all := strings.Join(lines, "\n"); len(lines) != 2 || !strings.Contains(lines[0], "broken") || strings.Contains(lines[1], "broken") {
			t.Errorf("log:\n%s\nwant a line with the cause and one that it is over", all)
		}
	})
}
