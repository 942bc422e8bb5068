package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sampleOutcome gives each field of the result a value.
func sampleOutcome() outcome {
	s, f := newStats(), &findings{}
	s.began = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for n := range 4 {
		e := entry{method: publish, from: s.began, to: s.began.Add(time.Duration(n+1) * time.Millisecond)}
		s.add(e, false)
	}
	s.add(entry{method: unpublish, from: s.began, to: s.began, err: status.Error(codes.Aborted, "busy")}, false)
	s.pods, s.volumes, s.doubled, s.cancelled, s.kills, s.seen, s.expired = 3, 6, 2, 1, 1, 5, 4
	s.late = []time.Duration{20 * time.Millisecond, 40 * time.Millisecond}
	s.consumed = consumed{cpu: 250 * time.Millisecond, peak: 32 << 20, threads: 9}
	ready := 1.25
	s.marks = []mark{{Killed: 1, Ready: &ready}, {Killed: 2}}
	s.samples = []sample{
		{Seconds: 0.5, Retained: 1, Disk: &diskSample{FreeBytes: 1 << 30, FreeInodes: 1000}},
		{
			Seconds: 1.5, Pods: 3, Calls: 5, Errors: 1, Violations: 1, Mounted: 2, Retained: 4,
			Publish: s.interval(publish), Unpublish: &interval{Calls: 1, P50Millis: 1, P99Millis: 1},
			Daemon: &daemonSample{CPUSeconds: 0.25, RSSBytes: 32 << 20, RSSAnonBytes: 16 << 20, Threads: 9},
			Disk:   &diskSample{FreeBytes: 1 << 29, FreeInodes: 900},
		},
	}
	f.kept = []violation{{
		promise: lostMarker, at: s.began.Add(time.Second), what: "<b>not there</b>", volume: "csi-1", pod: "uid-1",
		calls: []string{"12:00:00.000  NodePublishVolume  1ms  OK"},
	}}
	f.count, f.total = map[promise]int{lostMarker: 1}, 1
	return outcome{testOptions(), s, f, 2 * time.Second, errInterrupted, "/kept/here"}
}

// TestResultFormat holds the names of the fields: somebody's program reads them.
func TestResultFormat(t *testing.T) {
	var got bytes.Buffer
	if err := writeJSON(sampleOutcome(), &got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "result.json")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the format differs from %s; if that is meant, run the test with -update:\n%s", golden, &got)
	}
}

func TestResultRoundTrip(t *testing.T) {
	x := sampleOutcome()
	sent := newResult(x)
	var text bytes.Buffer
	if err := writeJSON(x, &text); err != nil {
		t.Fatal(err)
	}
	var got result
	decoder := json.NewDecoder(&text)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, sent) {
		t.Errorf("read back %+v, want %+v", got, *sent)
	}
}

func TestVerdict(t *testing.T) {
	broken := &findings{}
	broken.add(leakedMount, nil, "")
	for _, test := range []struct {
		f    *findings
		err  error
		want verdict
	}{
		{&findings{}, nil, clean},
		{&findings{}, errInterrupted, unproven},
		{broken, nil, violated},
		{broken, errInterrupted, violated},
	} {
		if got := newResult(outcome{testOptions(), newStats(), test.f, 0, test.err, ""}).Verdict; got != test.want {
			t.Errorf("%d violations and %v: %s, want %s", test.f.sum(), test.err, got, test.want)
		}
	}
}

func TestEmptyResultHasLists(t *testing.T) {
	var text bytes.Buffer
	if err := writeJSON(outcome{testOptions(), newStats(), &findings{}, 0, nil, ""}, &text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "null") {
		t.Errorf("a list is null:\n%s", &text)
	}
}
