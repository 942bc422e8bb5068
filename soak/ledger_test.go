package main

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestLedgerContention(t *testing.T) {
	aborted := status.Error(codes.Aborted, "busy")
	cancelled := status.Error(codes.Canceled, "")

	t.Run("alone", func(t *testing.T) {
		var l ledger
		l.end(l.begin(publish), nil)
		if l.end(l.begin(publish), aborted).contended {
			t.Error("a call after another one counts as contended")
		}
	})
	t.Run("together", func(t *testing.T) {
		var l ledger
		a, b := l.begin(publish), l.begin(unpublish)
		if !l.end(b, aborted).contended || !l.end(a, nil).contended {
			t.Error("calls at the same time do not count as contended")
		}
		if l.end(l.begin(publish), nil).contended {
			t.Error("contention outlasts its calls")
		}
	})
	t.Run("capabilities", func(t *testing.T) {
		var l ledger
		a := l.begin(getCapabilities)
		if l.end(l.begin(publish), nil).contended || l.end(a, nil).contended {
			t.Error("a call that concerns no volume counts as contention")
		}
	})
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable} {
		t.Run("after "+code.String(), func(t *testing.T) {
			var l ledger
			l.end(l.begin(publish), status.Error(code, ""))
			if !l.end(l.begin(publish), aborted).contended {
				t.Error("a call that may still run does not count")
			}
			if !l.end(l.begin(publish), nil).contended {
				t.Error("a refusal ended the contention")
			}
			if l.end(l.begin(publish), aborted).contended {
				t.Error("a success did not end the contention")
			}
		})
	}
	t.Run("long after", func(t *testing.T) {
		var l ledger
		l.end(l.begin(publish), cancelled)
		l.unsettled = l.unsettled.Add(-settleLimit)
		if l.end(l.begin(publish), aborted).contended {
			t.Error("a cancelled call excuses refusals for ever")
		}
	})
	t.Run("success of an older call", func(t *testing.T) {
		var l ledger
		older := l.begin(publish)
		l.end(l.begin(publish), cancelled)
		l.end(older, nil)
		if !l.end(l.begin(publish), aborted).contended {
			t.Error("the success of a call that began before settled the cancelled one")
		}
	})
}

func TestLedgerTimes(t *testing.T) {
	var l ledger
	first := l.end(l.begin(unpublish), status.Error(codes.Canceled, ""))
	second := l.end(l.begin(unpublish), nil)
	l.end(l.begin(unpublish), nil)
	if got := l.sent(unpublish); !got.Equal(first.from) {
		t.Errorf("first sent at %s, want the start of the cancelled call, %s", got, first.from)
	}
	if got := l.succeeded(unpublish); !got.Equal(second.to) {
		t.Errorf("first succeeded at %s, want the end of the first success, %s", got, second.to)
	}
	if !l.succeeded(publish).IsZero() {
		t.Error("a publish succeeded that was never sent")
	}
}

func TestLedgerStory(t *testing.T) {
	var l ledger
	for range longestStory {
		l.end(l.begin(publish), nil)
	}
	l.end(l.begin(unpublish), status.Error(codes.Internal, "it burns"))
	story := l.story()
	if len(story) != longestStory {
		t.Errorf("the story has %d lines, want the last %d", len(story), longestStory)
	}
	last := story[len(story)-1]
	if !strings.Contains(last, "NodeUnpublishVolume") || !strings.Contains(last, "Internal: it burns") {
		t.Errorf("the last line is %q, want method, code and message", last)
	}
}
