package pools

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/controller/vpsa"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// wire is a controller's way to a fake VPSA. Each request is a step.
type wire struct {
	array *fakevpsa.Array
	l     *link
}

var errBroken = errors.New("the connection broke")

func (w wire) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	err = w.l.step(r.Method+" "+objectID.ReplaceAllString(r.URL.Path, "-*"), errBroken, errBroken, func() (err error) {
		answer, err = w.array.Transport().RoundTrip(r) //nolint:bodyclose // the client closes it
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

var objectID = regexp.MustCompile(`-[0-9a-f]{8}`)

// endpoints numbers the endpoints: what a client does not know of an array's changes, it keeps by endpoint,
// and a controller that was started anew knows nothing.
var endpoints atomic.Int64

func vpsaClient(t *testing.T, transport http.RoundTripper) array.Array {
	a, err := vpsa.New(vpsa.Config{
		Endpoint: fmt.Sprintf("http://array-%d", endpoints.Add(1)), Token: "token", PoolID: "pool-00000001",
		Log: logr.Discard(), Transport: transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newVPSAWorld has a fake VPSA as large as [memArray].
func newVPSAWorld(t *testing.T) *world {
	a, err := fakevpsa.New(fakevpsa.Options{NoRecycleBin: true, Pools: []fakevpsa.Pool{{Capacity: 1000, Limit: 1000}}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, hangInBubble, vpsaClient(t, a.Transport()), func(l *link) array.Array { return vpsaClient(t, wire{a, l}) })
	w.grown = func(id string) (n int) {
		for _, change := range a.Changes("POST /api/volumes/*/expand.json") {
			if change.Object == id {
				n++
			}
		}
		return n
	}
	return w
}

// TestFaultAtEachRequest is TestFaultAtEachStep with the client of a VPSA: each request to the array is
// a step. One trial at each step is a sample; KATBOX_POOLS_FAULTS=all runs all of them.
func TestFaultAtEachRequest(t *testing.T) {
	which := func(at int) []trial {
		all := everyFault(at)
		return all[at%len(all):][:1]
	}
	if os.Getenv("KATBOX_POOLS_FAULTS") == "all" {
		which = everyFault
	}
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			eachFault(t, s, func(t *testing.T, f func(*world)) {
				synctest.Test(t, func(t *testing.T) { f(newVPSAWorld(t)) })
			}, which)
		})
	}
}
