package metricstest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// prefix begins the names of all metrics that are Katbox's.
const prefix = "katbox_"

// WantNames checks that each metric has its name, its kind and a help text, that there are no others of Katbox, and
// that Prometheus' own linter finds no fault. Names are sorted, each with its kind: "katbox_volumes gauge". It
// returns how many metrics are not Katbox's.
func WantNames(t testing.TB, from prometheus.Gatherer, names []string) (others int) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help text", family.GetName())
		}
		if !strings.HasPrefix(family.GetName(), prefix) {
			others++
			continue
		}
		got = append(got, family.GetName()+" "+strings.ToLower(family.GetType().String()))
	}
	if !slices.Equal(got, names) {
		t.Errorf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(names, "\n"))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, prefix) {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
	return others
}

// WantExplained checks that deploy/docs/reference.md explains each metric: without that it is of no use. The root
// directory is that of the repository.
func WantExplained(t testing.TB, root string, names []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "deploy/docs/reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, _, _ := strings.Cut(name, " ")
		if !regexp.MustCompile("`" + name + "[`{]").Match(page) {
			t.Errorf("deploy/docs/reference.md does not name the metric %s", name)
		}
	}
}
