package misuse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
)

// Answer is what came of a bad call.
type Answer struct {
	// What says what was bad about the call, for people.
	What string
	Call history.Call

	bad bad
}

// Number is how many bad calls there are.
func Number() int { return len(bads) }

// Send makes one bad call. A pick from 0 to Number()-1 is one each; any other
// number picks one too, always the same. ctx limits the call.
func Send(ctx context.Context, conn grpc.ClientConnInterface, pick uint64, site *Site) Answer {
	b := bads[pick%uint64(len(bads))]
	r := b.request(site)
	a := Answer{
		What: fmt.Sprintf("%s with %s", b.method, b.what),
		Call: history.Call{Method: b.method, From: time.Now(), Bad: true},
		bad:  b,
	}
	a.Call.Err = r.send(ctx, conn, b.method)
	a.Call.To = time.Now()
	if a.Call.Err == nil && b.method == history.Publish {
		// That it was taken is reported; what came of it is not to be in the way of others.
		_ = r.send(ctx, conn, history.Unpublish)
	}
	a.Call.Cancelled = ctx.Err() != nil
	return a
}

// Unanswered tells whether the driver said nothing about the input, because it
// was not there, not ready, or not in time. In an outage that is no fault of it.
func (a Answer) Unanswered() bool {
	switch a.Call.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

// longestMessage is how long a message may be that people read, in bytes. It
// may have a path in it.
const longestMessage = 2048

// Objection says what is wrong with an answer; nothing if it is as promised. An
// answer that is Unanswered is wrong too: it is for the caller to excuse it.
func Objection(a Answer) string {
	code, message := a.Call.Code(), status.Convert(a.Call.Err).Message()
	switch {
	case code == codes.OK:
		return fmt.Sprintf("%s was not refused", a.What)
	case code != a.bad.code:
		return fmt.Sprintf("%s was refused with %s instead of %s: %.300q", a.What, code, a.bad.code, message)
	case len(message) > longestMessage:
		return fmt.Sprintf("%s was refused with a message of %d bytes: %.300q", a.What, len(message), message)
	case strings.ContainsFunc(message, unicode.IsControl):
		return fmt.Sprintf("%s was refused with a message that is not one plain line: %.300q", a.What, message)
	case len(a.bad.fields) > 0 && !names(message, a.bad.fields):
		return fmt.Sprintf("%s was refused with a message that does not name %s: %.300q", a.What, a.bad.fields[0], message)
	}
	return ""
}

// names tells whether a message has one of the names in it, however it is
// spelt: volume_id, "volume ID", VolumeId.
func names(message string, fields []string) bool {
	plain := letters(message)
	return slices.ContainsFunc(fields, func(field string) bool { return strings.Contains(plain, letters(field)) })
}

// letters are the letters and digits of a text, all small.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
