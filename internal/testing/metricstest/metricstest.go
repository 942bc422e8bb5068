// Package metricstest reads metrics as a Prometheus server does, without a Prometheus library, and checks that
// each has its name, its kind and its place in deploy/docs/reference.md.
package metricstest

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// Values are metrics by name and labels, as in katbox_volumes{phase="Retained"}.
type Values map[string]float64

// Of returns the current values.
func Of(t testing.TB, m interface{ Handler() http.Handler }) Values {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("metrics: %d %s", answer.Code, answer.Body)
	}
	return Parse(t, answer.Body)
}

// Parse reads metrics in the text format.
func Parse(t testing.TB, r io.Reader) Values {
	t.Helper()
	values := Values{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			t.Fatalf("metrics: no value in %q", line)
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("metrics: %q: %v", line, err)
		}
		values[line[:at]] = value
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}

// Want checks that all wanted values exist and are as wanted.
func (v Values) Want(t testing.TB, when string, want Values) {
	t.Helper()
	for name, value := range want {
		if got, ok := v[name]; !ok || got != value {
			t.Errorf("%s: %s is %v (there: %t), want %v", when, name, got, ok, value)
		}
	}
}
