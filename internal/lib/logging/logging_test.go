package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRefusesWhatItDoesNotKnow(t *testing.T) {
	if _, err := New("loud", "json", io.Discard); err == nil || !strings.Contains(err.Error(), "loud") {
		t.Errorf("level loud: %v", err)
	}
	if _, err := New("info", "xml", io.Discard); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("format xml: %v", err)
	}
	if _, err := NewSink("xml", io.Discard, func() {}); err == nil || !strings.Contains(err.Error(), "xml") {
		t.Errorf("format xml of a sink: %v", err)
	}
}

func TestLevels(t *testing.T) {
	for level, want := range map[string]int{"debug": 3, "info": 2, "warn": 1, "error": 0} {
		var out bytes.Buffer
		log, err := New(level, "console", &out)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("a")
		log.Info("b")
		log.Warn("c")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%s: %d lines, want %d", level, got, want)
		}
	}
}

// broken fails until it is mended.
type broken struct {
	mu     sync.Mutex
	mended bool
	got    bytes.Buffer
}

func (b *broken) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.mended {
		return 0, errors.New("nobody reads")
	}
	return b.got.Write(p)
}

// TestMissingLinesAreCounted in the log, in its format, and by the caller.
func TestMissingLinesAreCounted(t *testing.T) {
	out, dropped := &broken{}, make(chan struct{}, 10)
	sink, err := NewSink("json", out, func() { dropped <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	log, err := New("info", "json", sink)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("lost")
	<-dropped
	out.mu.Lock()
	out.mended = true
	out.mu.Unlock()
	log.Info("also lost") // no line overtakes one that is missing
	sink.Close(time.Minute)
	var line struct {
		Msg   string
		Lines int
	}
	if err := json.Unmarshal(out.got.Bytes(), &line); err != nil || line.Lines != 2 || !strings.Contains(line.Msg, "missing") {
		t.Errorf("the log has %q (%v), want one line that says that two are missing", out.got.String(), err)
	}
}
