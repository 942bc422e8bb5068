package actors

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"

	"github.com/katbox/katbox/messages"
)

// TestLibraryLogsQuietlyIntoOurSink: the actor library tells of each dead letter at info, message
// and all. At our default level nothing of that shows.
func TestLibraryLogsQuietlyIntoOurSink(t *testing.T) {
	for verbosity, want := range map[int]bool{0: false, 1: true} {
		var lines []string
		log := librarySlog(funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{Verbosity: verbosity}))
		log.Info("actor system started", "id", "x")
		log.Debug("fine detail")
		if got := len(lines) > 0 && strings.Contains(lines[0], "actor system started"); got != want {
			t.Errorf("verbosity %d: %q, want the library's info lines: %t", verbosity, lines, want)
		}
		lines = nil
		log.Warn("something odd")
		if len(lines) != 1 || !strings.Contains(lines[0], "protoactor") {
			t.Errorf("verbosity %d: %q, want the warning, with the library's name", verbosity, lines)
		}
	}
}

func TestReplyTakesOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reply messages.Reply[int]
		reply.Prepare()
		reply.Send(1, nil)
		reply.Send(2, nil)
		reply.Fail(errors.New("late"))
		if got, err := reply.Wait(t.Context()); got != 1 || err != nil {
			t.Errorf("got %d, %v, want the first answer", got, err)
		}
	})
}
