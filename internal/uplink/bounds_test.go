package uplink

import (
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
	if err == nil || !strings.Contains(err.Error(), "more than the 1000 owners") {
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
