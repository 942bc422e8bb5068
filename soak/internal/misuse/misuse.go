// Package misuse makes calls with bad input: what a broken or hostile caller could send, each with
// one thing wrong. A driver that keeps CSI and the design's ninth promise refuses each with one clear
// error that names the field, and nothing reaches a path or a mount. The package says what is wrong
// with an answer, and looks for what a call may have left.
//
// What the design leaves to the driver is not in the list: volume IDs of any plain path element, a
// file system type.
package misuse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/katbox/katbox/soak/internal/history"
	"github.com/katbox/katbox/soak/testbed"
)

// request has the fields of every method's request; the target path is the volume path of
// NodeGetVolumeStats.
type request = csi.NodePublishVolumeRequest

// call is one of the table's calls.
type call struct {
	*row
	method history.Method
	value  string
}

// calls are all of them.
var calls = func() (all []call) {
	for i := range table {
		for _, method := range table[i].methods {
			for _, value := range table[i].values {
				all = append(all, call{&table[i], method, value})
			}
		}
	}
	return all
}()

// request is the bad request.
func (c call) request(s *Site) *request {
	r := s.good()
	c.spoil(r, s.expand(c.value))
	return r
}

// what says what is bad about the call, for people.
func (c call) what() string {
	what := fmt.Sprintf("%s with %s %.70q", c.method, c.name, c.value)
	if len(c.value) > 70 {
		what += fmt.Sprintf(" (%d bytes)", len(c.value))
	}
	return what
}

func send(ctx context.Context, conn grpc.ClientConnInterface, m history.Method, r *request) error {
	node := csi.NewNodeClient(conn)
	var err error
	switch m {
	case history.Publish:
		_, err = node.NodePublishVolume(ctx, r)
	case history.Unpublish:
		_, err = node.NodeUnpublishVolume(ctx, testbed.Unpublish(r.GetVolumeId(), r.GetTargetPath()))
	default:
		_, err = node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: r.GetVolumeId(), VolumePath: r.GetTargetPath()})
	}
	return err
}

// Answer is what came of a bad call.
type Answer struct {
	// What says what was bad about the call, for people.
	What string
	Call history.Call
	// Objection says what is wrong with the answer; nothing if it is as promised. No answer at all is
	// wrong, too: in an outage it is for the caller to excuse that.
	Objection string
}

// Number is how many bad calls there are.
func Number() int { return len(calls) }

// Send makes one bad call. A pick from 0 to Number()-1 is one each; any other number picks one too,
// always the same. ctx limits the call.
func Send(ctx context.Context, conn grpc.ClientConnInterface, pick uint64, site *Site) Answer {
	c := calls[pick%uint64(len(calls))]
	r := c.request(site)
	a := Answer{What: c.what(), Call: history.Call{Method: c.method, From: time.Now(), Bad: true}}
	a.Call.Err = send(ctx, conn, c.method, r)
	a.Call.To = time.Now()
	if a.Call.Err == nil && c.method == history.Publish {
		// That it was taken is reported; what came of it is not to be in the way of others.
		_ = send(ctx, conn, history.Unpublish, r)
	}
	a.Call.Cancelled = ctx.Err() != nil
	if wrong := c.objection(status.Convert(a.Call.Err)); wrong != "" {
		a.Objection = a.What + wrong
	}
	return a
}

// Unanswered reports whether the driver said nothing about the input, because it was not there, not
// ready, or not in time. In an outage that is no fault of it.
func (a Answer) Unanswered() bool {
	return slices.Contains([]codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled}, a.Call.Code())
}

// longestMessage is how long a message may be that people read, in bytes. It may have a path in it.
const longestMessage = 2048

func (c call) objection(answer *status.Status) string {
	wrong, message := "", answer.Message()
	switch code := answer.Code(); {
	case code == codes.OK:
		return " was not refused"
	case code != c.code:
		wrong = fmt.Sprintf("with %s instead of %s", code, c.code)
	case len(message) > longestMessage:
		wrong = fmt.Sprintf("with a message of %d bytes", len(message))
	case strings.ContainsFunc(message, unicode.IsControl):
		wrong = "with a message that is not one plain line"
	case !strings.Contains(letters(message), letters(c.field)):
		wrong = "with a message that does not name " + c.field
	default:
		return ""
	}
	return fmt.Sprintf(" was refused %s: %.300q", wrong, message)
}

// letters are the letters and digits of a text, all small: volume_id, "volume ID" and VolumeId are
// the same field.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
