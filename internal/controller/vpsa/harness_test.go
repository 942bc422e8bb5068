package vpsa

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

var errBroken = errors.New("the connection broke")

// arrays numbers the arrays of all tests: what is in doubt belongs to an endpoint.
var arrays atomic.Int64

// wire is a way to an array on which requests fare as a test wants.
type wire struct {
	array *fakevpsa.Array
	// do, if it is set, sends a request instead; n counts from 1.
	do func(n int, r *http.Request, pass func() (*http.Response, error)) (*http.Response, error)

	mu    sync.Mutex
	calls []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.calls = append(w.calls, r.Method+" "+r.URL.Path)
	n, do := len(w.calls), w.do
	w.mu.Unlock()
	pass := func() (*http.Response, error) { return w.array.Transport().RoundTrip(r) }
	if do == nil {
		return pass()
	}
	return do(n, r, pass)
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

func newArray(t *testing.T, o fakevpsa.Options) *fakevpsa.Array {
	t.Helper()
	a, err := fakevpsa.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newClient returns a client of an array behind a wire.
func newClient(t *testing.T, w *wire) array.Array {
	t.Helper()
	c, err := New(Config{
		Endpoint: fmt.Sprintf("http://array-%d", arrays.Add(1)), Token: "token", PoolID: "pool-00000001",
		Log: logr.Discard(), Transport: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// hang guards against tests that never end.
const hang = 2 * time.Minute

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("the error is %v, want %v", got, want)
	}
}

func wantText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want %q in it", err, text)
		}
	}
}
