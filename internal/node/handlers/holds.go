package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/asked"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

const (
	// mostKeep bounds the body of a PATCH, in bytes: a reason of 1,024 bytes, each encoded in six.
	mostKeep = 8 << 10
	// localUser is who asks on the admin socket: its permissions let no other user in.
	localUser = "root on the node"
)

// keep pins the volume of the request, or takes back what was decided before.
func (a *answer) keep(ctx context.Context) error {
	keep, err := a.readKeep()
	if err != nil {
		return err
	}
	if keep.KeepUntil == nil {
		a.verb = "unpin"
		return a.decide(ctx, func(ctx context.Context) (volume.Description, error) {
			return a.h.Volumes.Unpin(ctx, a.record.ID, a.who())
		})
	}
	a.verb = "pin"
	return a.decide(ctx, func(ctx context.Context) (volume.Description, error) {
		return a.h.Volumes.Pin(ctx, a.record.ID, *keep.KeepUntil, a.who(), keep.Reason)
	})
}

// remove deletes the volume of the request: now, or after the grace of the daemon.
func (a *answer) remove(ctx context.Context) error {
	p := asked.New(a.r.URL.Query())
	released, reason := grace(p, "grace"), reasonIn(p, "reason")
	if wrong := p.End(); wrong != nil {
		return wrong
	}
	if released {
		a.verb = "release"
		return a.decide(ctx, func(ctx context.Context) (volume.Description, error) {
			return a.h.Volumes.Release(ctx, a.record.ID, a.who(), reason)
		})
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := a.look(ctx); err != nil {
		return err
	}
	if err := a.h.Volumes.Purge(ctx, a.record.ID, a.who(), reason); err != nil {
		return err
	}
	return a.JSON(http.StatusOK, struct {
		Kind   string `json:"kind"`
		Status string `json:"status"`
	}{"Status", "Success"})
}

// decide changes how long the volume of the request is kept, and answers with the volume as it is then.
func (a *answer) decide(ctx context.Context, change func(context.Context) (volume.Description, error)) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := a.look(ctx); err != nil {
		return err
	}
	d, err := change(ctx)
	if err != nil {
		return err
	}
	a.record = d.Record
	return a.JSON(http.StatusOK, a.h.volume(d))
}

// look reads what is known of the volume of the request, for the log.
func (a *answer) look(ctx context.Context) error {
	d, err := a.h.Volumes.Describe(ctx, a.record.ID)
	if err == nil {
		a.record = d.Record
	}
	return err
}

// readKeep reads the body of a PATCH. Unknown fields are refused: a misspelled one must not take a pin
// back.
func (a *answer) readKeep() (api.Keep, error) {
	if err := a.Control.SetReadDeadline(time.Now().Add(headerLimit)); err == nil {
		defer func() { _ = a.Control.SetReadDeadline(time.Time{}) }()
	}
	body, err := io.ReadAll(io.LimitReader(a.r.Body, mostKeep+1))
	if media, _, wrong := mime.ParseMediaType(a.r.Header.Get("Content-Type")); err == nil && (wrong != nil || media != "application/json") {
		err = fmt.Errorf("its Content-Type is %.100q, and it has to be application/json", a.r.Header.Get("Content-Type"))
	}
	if err == nil && len(body) > mostKeep {
		err = fmt.Errorf("it has more than %d bytes", mostKeep)
	}
	if err != nil {
		if a.r.ProtoMajor == 1 { // what is left of the body would be read before the next request
			a.Header().Set("Connection", "close")
		}
		return api.Keep{}, badBody(err)
	}
	return parseKeep(body)
}

// parseKeep reads a Keep. keepUntil has to be there, also for null.
func parseKeep(body []byte) (api.Keep, error) {
	var fields struct {
		KeepUntil json.RawMessage `json:"keepUntil"`
		Reason    string          `json:"reason"`
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fields); err != nil {
		return api.Keep{}, badBody(err)
	}
	keep := api.Keep{Reason: fields.Reason}
	_, after := decoder.Token()
	switch {
	case after != io.EOF:
		return keep, badBody(fmt.Errorf("something follows after the object"))
	case fields.KeepUntil == nil:
		return keep, bad(api.BadParameter, "keepUntil", "keepUntil is missing; it is a time of RFC 3339, or null to take back a pin or a release")
	}
	if err := json.Unmarshal(fields.KeepUntil, &keep.KeepUntil); err != nil {
		return keep, bad(api.BadParameter, "keepUntil",
			"keepUntil=%.100s is not a time of RFC 3339, such as \"2026-11-22T03:04:05Z\"", fields.KeepUntil)
	}
	switch {
	case keep.KeepUntil == nil && keep.Reason != "":
		return keep, bad(api.BadParameter, "reason", "a reason is for a pin: leave it out where keepUntil is null")
	case keep.KeepUntil != nil && strings.TrimSpace(keep.Reason) == "":
		return keep, bad(api.BadParameter, "reason", "the reason is missing: a pin needs one, so that others know why the volume is still there")
	}
	if wrong := checkReason(keep.Reason); wrong != nil {
		return keep, wrong
	}
	return keep, nil
}

func badBody(err error) *api.Error {
	return bad(api.BadParameter, "", "the body of the request is not {\"keepUntil\": TIME or null, \"reason\": TEXT}: %s", volume.OneLine(err))
}

// grace returns whether a duration of more than 0 is given. How long it is does not matter.
func grace(p *asked.Parameters, name string) bool {
	text := p.Text(name)
	if text == "" {
		return false
	}
	d, err := duration.Parse(text)
	if err != nil || d < 0 {
		p.Fail(bad(api.BadParameter, name, "%s=%q is not a duration, such as 10m; 0 deletes the volume now", name, text))
	}
	return d > 0
}

// reasonIn returns a reason that a person gives.
func reasonIn(p *asked.Parameters, name string) string {
	text := p.Text(name)
	if wrong := checkReason(text); wrong != nil {
		p.Fail(wrong)
	}
	return text
}

// checkReason refuses a reason that a record cannot have.
func checkReason(text string) *api.Error {
	switch {
	case len(text) > volume.MaxHoldWhy:
		return bad(api.BadParameter, "reason", "the reason has %d bytes, and may have %d", len(text), volume.MaxHoldWhy)
	case cleaned(text) != text:
		return bad(api.BadParameter, "reason", "the reason has characters that cannot be printed, such as line breaks; leave them out")
	}
	return nil
}

// who returns who asks, as a record can have it.
func (a *answer) who() string {
	if !a.h.Gateway {
		return localUser
	}
	who := cleaned(asker(a.r, api.HeaderUser))
	for len(who) > volume.MaxHoldBy {
		_, last := utf8.DecodeLastRuneInString(who)
		who = who[:len(who)-last]
	}
	return who
}

// cleaned returns a text with a replacement for each character that cannot be printed.
func cleaned(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}
