package uplink

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// TestAnswersTakeLittleMemory: many empty answers fit into a body, and each takes 144 bytes once it is
// read.
func TestAnswersTakeLittleMemory(t *testing.T) {
	body := `{"items":[` + strings.Repeat("{},", mostOwners/3-10) + "{}]}"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readAnswers(strings.NewReader(body))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than the 1000 that") {
		t.Errorf("%v, want that there are too many", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 16*mostOwners {
		t.Errorf("a body of %d bytes takes %d", len(body), took)
	}
}

// TestAnswersMayBeMissing: a gateway may have nothing to say.
func TestAnswersMayBeMissing(t *testing.T) {
	for _, body := range []string{`{}`, `{"items":null}`, `{"items":[]}`} {
		if answers, err := readAnswers(strings.NewReader(body)); err != nil || len(answers) > 0 {
			t.Errorf("%s: %v, %v", body, answers, err)
		}
	}
	for _, body := range []string{`{"items":{}}`, `{"items":1}`, `{"items":["a"]}`} {
		if answers, err := readAnswers(strings.NewReader(body)); err == nil {
			t.Errorf("%s: %v", body, answers)
		}
	}
}

// TestReasonsAreShort: what the other end sent does not fill the log.
func TestReasonsAreShort(t *testing.T) {
	if err := plain(errors.New("malformed HTTP response " + strings.Repeat("x\n", mostAnswer))); len(err.Error()) > 2*mostMessage ||
		!strings.HasPrefix(err.Error(), "malformed HTTP response") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%d bytes: %.100q", len(err.Error()), err)
	}
	if err := plain(io.ErrClosedPipe); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}
