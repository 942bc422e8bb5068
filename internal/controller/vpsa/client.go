package vpsa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/lib/crashpoint"
	"github.com/katbox/katbox/internal/lib/retry"
)

type client struct {
	endpoint  string
	authorize func(*http.Request)
	// conceal takes the access key out of what the array says.
	conceal func(string) string
	http    *http.Client
	timeout time.Duration
	poolID  string
	log     logr.Logger
	metrics Metrics
	// turns holds an item for each request in flight. A health check has a turn of its own: behind many calls it
	// would come too late to say that the array answers.
	turns, checks chan struct{}
	// page is how many objects of a list are asked for at once.
	page int
	// largest is the most bytes of an answer; blind tells that every request counts as sent.
	largest int64
	blind   bool
	// grows has the volumes that are growing, by ID, each with a channel that closes at the end.
	grows sync.Map
	// release is the version that the array has said last.
	release atomic.Pointer[string]
}

// Format keeps what a client is made of out of logs.
func (c *client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "VPSA %s", c.endpoint) }

// call is one request.
type call struct {
	method string
	// pattern is the path below /api, without .json; {id} stands for id.
	pattern, id string
	query       url.Values
	body        map[string]any
	// fields decode what stands in the answer.
	fields map[string]field
	// hints decode what may stand beside them, and does not make an answer one of the array.
	hints map[string]field
	// limit is how long it may take; 0 means the client's timeout.
	limit time.Duration
	// check: it is part of a health check.
	check bool
}

func (q call) path() string { return strings.Replace(q.pattern, "{id}", q.id, 1) }

// arrayTime is by how much the array is to give up sooner than the client.
const arrayTime = 5 * time.Second

// readings is how often a GET is sent.
const readings = 3

var ids = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// get reads. It repeats what nothing answered.
func (c *client) get(ctx context.Context, q call) error {
	q.method = http.MethodGet
	for attempt := 1; ; attempt++ {
		err := c.send(ctx, q)
		again := errors.Is(err, array.ErrUnreachable) && !errors.Is(err, array.ErrCredentials) &&
			!errors.Is(err, array.ErrTLS) && !errors.Is(err, array.ErrTimeout)
		if !again || attempt == readings || retry.Pause(ctx, jitter(time.Duration(attempt*attempt)*200*time.Millisecond)) != nil {
			return err
		}
	}
}

// change sends a request that changes something, once.
func (c *client) change(ctx context.Context, q call) error {
	return crashpoint.Around("vpsa/"+q.method+":"+q.pattern, func() error { return c.send(ctx, q) })
}

// failure is a request that got no answer of the array.
type failure struct {
	err error
	// open: the array may have got it.
	open bool
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func (c *client) send(ctx context.Context, q call) error {
	if strings.Contains(q.pattern, "{id}") && !ids.MatchString(q.id) {
		return fmt.Errorf("%w: %q is no ID of an array", array.ErrNotFound, q.id)
	}
	began := time.Now()
	err := c.inTurn(ctx, q)
	took, outcome := time.Since(began), outcomeOf(err)
	if c.metrics != nil {
		c.metrics.Called(q.method, q.pattern, outcome, took)
	}
	c.log.V(1).Info("called the array", "method", q.method, "path", q.path(), "outcome", outcome, "took", took.String())
	if err != nil {
		return fmt.Errorf("%s %s of the array %s: %w", q.method, q.path(), c.endpoint, err)
	}
	return nil
}

func (c *client) inTurn(ctx context.Context, q call) error {
	turns := c.turns
	if q.check {
		turns = c.checks
	}
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return &failure{err: fmt.Errorf("%w, while waiting for other calls", ended(ctx.Err()))}
	}
	defer func() { <-turns }()
	limit := q.limit
	if limit == 0 {
		limit = c.timeout
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var open atomic.Bool
	open.Store(c.blind)
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { open.Store(true) },
	})
	request, err := c.request(limited, q)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return &failure{err: transportError(ctx, err), open: open.Load()}
	}
	defer answer.Body.Close()
	err = c.read(ctx, answer, q)
	if errors.Is(err, array.ErrUnreachable) && !errors.Is(err, array.ErrCredentials) || errors.Is(err, context.Canceled) {
		return &failure{err: err, open: true}
	}
	return err
}

func (c *client) request(ctx context.Context, q call) (*http.Request, error) {
	deadline, _ := ctx.Deadline()
	seconds := max(1, int(time.Until(deadline.Add(-arrayTime))/time.Second))
	target := c.endpoint + "/api/" + q.path() + ".json"
	var body []byte
	if q.method == http.MethodGet {
		query := url.Values{"timeout": {strconv.Itoa(seconds)}}
		maps.Copy(query, q.query)
		target += "?" + query.Encode()
	} else {
		values := map[string]any{"timeout": seconds}
		maps.Copy(values, q.body)
		var err error
		if body, err = json.Marshal(values); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if q.method != http.MethodGet {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	c.authorize(request)
	return request, nil
}

// jitter keeps clients that failed together from coming back together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }
