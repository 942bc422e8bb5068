package vpsa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/katbox/katbox/internal/controller/array"
)

// field decodes the value of a field of the answer.
type field func(*json.Decoder) error

// largest is the most bytes that an answer may have.
const largest = 64 << 20

// body is an answer's body, up to the largest one; it keeps the error of the connection.
type body struct {
	from io.Reader
	left int64
	err  error
}

var errTooLong = errors.New("the answer is too long")

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = errTooLong
		return 0, errTooLong
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// read takes the array's answer apart.
func (c *client) read(ctx context.Context, answer *http.Response, q call) error {
	switch code := answer.StatusCode; {
	case code == http.StatusNoContent:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fmt.Errorf("%w: HTTP %d", array.ErrCredentials, code)
	case code >= 300 && code < 400:
		return fmt.Errorf("%w: it redirects to %s, and no redirect is followed", array.ErrBadAnswer, target(answer))
	case code >= 500:
		return fmt.Errorf("%w: HTTP %d", array.ErrBadAnswer, code)
	}
	from := &body{from: answer.Body, left: c.largest}
	e := envelope{fields: q.fields, hints: q.hints}
	err := e.decode(json.NewDecoder(from))
	switch {
	case errors.Is(from.err, errTooLong):
		return fmt.Errorf("%w: %w", array.ErrBadAnswer, errTooLong)
	case from.err != nil:
		return transportError(ctx, from.err)
	case err != nil:
		return fmt.Errorf("%w: HTTP %d, %q: %w", array.ErrBadAnswer, answer.StatusCode, answer.Header.Get("Content-Type"), err)
	}
	// What is behind the object is nothing, as a rule; read, it frees the connection for the next call.
	_, _ = io.CopyN(io.Discard, from, 4<<10)
	text := c.conceal(e.text)
	switch {
	case e.code == 0 && answer.StatusCode >= 400:
		return fmt.Errorf("%w: HTTP %d", array.ErrBadAnswer, answer.StatusCode)
	case e.code == 0:
		return nil
	case strings.HasPrefix(text, submitted):
		return errSubmitted
	}
	return &Error{Code: e.code, Text: text}
}

// target is the host that a redirect leads to.
func target(answer *http.Response) string {
	if to, err := url.Parse(answer.Header.Get("Location")); err == nil && to.Host != "" {
		return fmt.Sprintf("%q", to.Host)
	}
	return "another path"
}

// envelope is what stands around each answer:
//
//	{"response": {"status": 0, "status-msg": "...", "volumes": [...]}}
type envelope struct {
	fields, hints map[string]field
	code          int
	text          string
	// known: there was a status, or one of the fields.
	known bool
}

func (e *envelope) decode(d *json.Decoder) error {
	found := false
	err := object(d, func(key string) error {
		if key != "response" {
			return skip(d)
		}
		found = true
		return object(d, func(key string) error { return e.field(d, key) })
	})
	if err == nil && (!found || !e.known) {
		return errors.New("it has no response with a status")
	}
	return err
}

func (e *envelope) field(d *json.Decoder, key string) error {
	if decode := e.fields[key]; decode != nil {
		e.known = true
		return decode(d)
	}
	if decode := e.hints[key]; decode != nil {
		return decode(d)
	}
	switch key {
	case "status":
		var code number
		err := d.Decode(&code)
		e.code, e.known = int(code), true
		return err
	case "message", "status-msg", "status_msg":
		var s text
		if err := d.Decode(&s); err != nil {
			return err
		}
		e.say(string(s))
		return nil
	case "errors":
		var all []struct {
			Message text `json:"message"`
		}
		if err := d.Decode(&all); err != nil {
			return err
		}
		for _, one := range all {
			e.say(string(one.Message))
		}
		return nil
	}
	return skip(d)
}

// longest is the most of a text that goes into errors, events and resources.
const longest = 512

// say keeps the first text.
func (e *envelope) say(s string) {
	if e.text == "" {
		e.text = strings.ToValidUTF8(s[:min(len(s), longest)], "")
	}
}

// object reads an object, or null. each reads the value of a key.
func object(d *json.Decoder, each func(key string) error) error {
	open, err := d.Token()
	if err != nil || open == nil {
		return err
	}
	if open != json.Delim('{') {
		return errors.New("it has something else where an object belongs")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if err := each(key.(string)); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

func skip(d *json.Decoder) error {
	var ignored json.RawMessage
	return d.Decode(&ignored)
}

// one decodes an object into v, where there is one.
func one[T any](v **T) field {
	return func(d *json.Decoder) error { return d.Decode(v) }
}

// many decodes a list one item at a time, so that the answer is never in memory as a whole.
func many[T any](each func(T)) field {
	return func(d *json.Decoder) error {
		open, err := d.Token()
		if err != nil || open == nil {
			return err
		}
		if open != json.Delim('[') {
			return errors.New("it has something else where a list belongs")
		}
		for d.More() {
			var item T
			if err := d.Decode(&item); err != nil {
				return err
			}
			each(item)
		}
		_, err = d.Token()
		return err
	}
}
