package fakevpsa

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The longest body that a request may have.
const longestBody = 1 << 20

// ServeHTTP answers a request to the array, or to its administration below /fake/.
func (a *Array) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/fake/") {
		a.admin.ServeHTTP(w, r)
		return
	}
	rt, id := find(r.Method, r.URL.Path)
	if rt == nil {
		http.NotFound(w, r)
		return
	}
	c := &call{method: r.Method, path: r.URL.Path, pattern: rt.pattern, id: id, params: params{}}
	bad := c.read(r)
	a.away(r)
	delay, fault := a.arrived(c)
	if delay > 0 {
		wait(r, delay)
	}
	if !fault.before(w, r) {
		return
	}
	token := r.Header.Get("X-Access-Key")
	if token == "" {
		token = c.params.get("access_key")
	}
	result, refused := a.run(c, rt, token, bad, fault)
	fault.after(r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	e := &encoder{w: w, strings: result.strings}
	if fault.is(Cut) {
		e.w = &cutWriter{w: w, left: int(fault.Bytes)}
	}
	e.respond(result, refused)
}

// read decodes the request's fields.
func (c *call) read(r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, longestBody))
	if err != nil {
		return err
	}
	for key, values := range r.URL.Query() {
		c.params.add(key, values...)
	}
	if err := c.params.decode(body); err != nil {
		return err
	}
	if c.start, err = c.params.number("start"); err != nil {
		return err
	}
	c.limit, err = c.params.number("limit")
	return err
}

// arrived counts a request. It returns for how long that waits, and the fault that it meets; nil is
// none.
func (a *Array) arrived(c *call) (time.Duration, *Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[c.name()]++
	return a.take(c)
}

// result is what an answer is written from, without the lock.
type result struct {
	answer  answer
	strings bool
	message string
}

// run makes the change that a request asks for.
func (a *Array) run(c *call, rt *route, token string, bad error, fault *Fault) (result, *refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.now = a.now()
	a.state.requests++
	a.settle(true)
	a.catchUp()
	res := result{strings: a.state.settings.Strings, message: a.state.settings.Message}
	switch {
	case token != a.state.settings.Token:
		return res, refuse(statusCredentials, "Invalid credentials")
	case bad != nil:
		return res, refuse(otherError, "The request cannot be read: %v", bad)
	case fault.is(Refuse):
		return res, refuse(fault.Status, "%s", fault.Text)
	case fault.is(Submit):
		return res, a.submit(c, fault)
	}
	var refused *refusal
	res.answer, refused = rt.handle(a.state, c)
	if err := a.made(c, fault.is(LoseAnswer) || fault.is(HangAfter)); err != nil {
		return res, refuse(otherError, "%v", err)
	}
	return res, refused
}

// made notes what a request has changed, saves it, and lets the data plane follow.
func (a *Array) made(c *call, lost bool) error {
	if len(c.changed) == 0 {
		return nil
	}
	for _, object := range c.changed {
		a.changes = append(a.changes, c.change(object, lost))
	}
	if err := a.save(); err != nil {
		return fmt.Errorf("the state cannot be saved: %w", err)
	}
	return a.follow()
}

// respond writes the envelope and what is in it.
func (e *encoder) respond(res result, refused *refusal) {
	e.begin('{')
	e.object("response", func() {
		if refused == nil {
			if res.answer != nil {
				res.answer(e)
			}
			e.number("status", statusOK)
			return
		}
		e.number("status", int64(refused.status))
		switch {
		case refused.status == statusSubmitted:
			e.text("message", refused.text)
		case res.message == "errors":
			e.key("errors")
			e.begin('[')
			e.begin('{')
			e.text("message", refused.text)
			e.end('}')
			e.end(']')
		default:
			e.text(res.message, refused.text)
		}
	})
	e.end('}')
	e.flush()
}

// cutWriter breaks the connection after some bytes.
type cutWriter struct {
	w    http.ResponseWriter
	left int
}

func (c *cutWriter) Write(b []byte) (int, error) {
	if c.left < len(b) {
		if _, err := c.w.Write(b[:c.left]); err == nil {
			_ = http.NewResponseController(c.w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.w.Write(b)
}

// wait ends when the time is over, or the request.
func wait(r *http.Request, d time.Duration) {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// hang ends with the request. What was waiting in vain breaks the connection.
func hang(r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
