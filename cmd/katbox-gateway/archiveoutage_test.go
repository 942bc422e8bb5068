package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/katbox/katbox/internal/gateway/uploads"
	form "github.com/katbox/katbox/internal/model/archived"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/testing/metricstest"
)

// alertExpr returns the metric, the operator and the number that an alert compares.
func alertExpr(t *testing.T, alert string) (metric, operator string, number float64) {
	t.Helper()
	rules, err := os.ReadFile("../../deploy/monitoring/rules.yaml")
	must(t, err)
	found := regexp.MustCompile(`- alert: ` + alert + `\n(?:\s*#.*\n)*\s*expr: (\w+) (>|==) (\d+)\n`).FindSubmatch(rules)
	if found == nil {
		t.Fatalf("%s does not compare one metric with a number", alert)
	}
	number, err = strconv.ParseFloat(string(found[3]), 64)
	must(t, err)
	return string(found[1]), string(found[2]), number
}

// fires reports whether the expression of an alert is true on metrics.
func fires(t *testing.T, alert string, values metricstest.Values) bool {
	t.Helper()
	metric, operator, number := alertExpr(t, alert)
	value, ok := values[metric] // a gateway that has just started has not looked for the bucket yet
	return ok && (operator == ">" && value > number || operator == "==" && value == number)
}

// metrics are the gateway's own.
func (p *process) metrics() (metricstest.Values, error) {
	answer, err := http.Get("http://" + p.http + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return metricstest.Parse(p, answer.Body), nil
}

// TestHourWithoutTheBucket: of volumes that have waited for an hour because the store was away none is lost, and failures go first, the
// newest first, though the gateway was killed meanwhile. Both alerts are true on the metrics, as long as that lasts.
func TestHourWithoutTheBucket(t *testing.T) {
	s := newCrashStage(t)
	s.store.Fail(func(string, string) int { return http.StatusServiceUnavailable })
	s.again()
	var all []volume.Record
	for i := range 6 {
		// The older ones are those of failures.
		outcome := volume.Failed
		if i >= 3 {
			outcome = volume.Succeeded
		}
		all = append(all, s.node.retainSince(i, time.Hour-time.Duration(i)*time.Minute, outcome, []byte(fmt.Sprint("content ", i))))
	}
	states := func(want bool) error {
		values, err := s.metrics()
		switch {
		case err != nil:
			return err
		case fires(t, "KatboxArchiveBucketDown", values) != want:
			return errors.New("KatboxArchiveBucketDown is not as it should be")
		case fires(t, "KatboxArchiveBehind", metricstest.Of(t, s.node.metrics)) != want:
			return errors.New("KatboxArchiveBehind is not as it should be")
		}
		return nil
	}
	s.until("both alerts fire", func() error { return states(true) })
	s.again()
	s.until("both fire with another gateway", func() error { return states(true) })
	s.until("it was tried in vain, again and again", func() error {
		failures := 0.0
		for name, n := range metricstest.Of(t, s.node.metrics) {
			if strings.HasPrefix(name, "katbox_archive_failures_total") {
				failures += n
			}
		}
		if failures < 6 {
			return fmt.Errorf("%v times", failures)
		}
		return nil
	})
	if s.node.order() != nil {
		t.Error("a volume is archived without a bucket")
	}
	s.store.Fail(nil)
	s.until("all are archived", func() error {
		if n := len(s.node.order()); n < len(all) {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	s.until("no alert fires", func() error { return states(false) })
	got := s.node.order()
	// The first one is that which was tried when the store came back.
	want := []volume.ID{got[0]}
	for _, i := range []int{2, 1, 0, 5, 4, 3} {
		if all[i].ID != got[0] {
			want = append(want, all[i].ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("archived in the order %q, want %q", got, want)
	}
	s.store.age(2 * uploads.Abandoned)
	if s.sweep(-1) {
		t.Error("the sweep was killed")
	}
	for _, r := range all {
		if indexes, pieces := s.objects(r); indexes != 1 || pieces != 1 {
			t.Errorf("%s: %d indexes, %d pieces", r.PodName, indexes, pieces)
		}
	}
	if n := len(s.store.Keys(form.IndexPrefix(clusterUID, ciUID))); n != len(all) {
		t.Errorf("%d indexes", n)
	}
}
