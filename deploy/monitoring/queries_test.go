package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/katbox/katbox/internal/controller/poolmetrics"
	"github.com/katbox/katbox/internal/gateway/gatewaymetrics"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/csi/inline"
	"github.com/katbox/katbox/internal/node/metrics"
)

// words are those of PromQL that the queries use; all else in a query is a metric or a
// label.
var words = strings.Fields(`
	and or unless by on ignoring without group_left offset vector absent label_replace
	sum min max count time topk bottomk rate increase changes histogram_quantile min_over_time max_over_time`)

// ofOthers are metrics that Prometheus makes itself, and those of the API server and of
// kube-state-metrics about Katbox.
var ofOthers = map[string]map[string][]string{
	"up":     {},
	"ALERTS": {"alertname": nil, "alertstate": {"firing", "pending"}, "page": {"on-many-nodes"}, "node": nil},
	// The API server makes it.
	"aggregator_unavailable_apiservice":               {"name": {"v1alpha1.katbox.io"}},
	"apiserver_mutating_admission_policy_check_total": {"policy": {"katbox-scratch"}, "policy_binding": nil, "error_type": nil},
	"kube_pod_info": {
		"namespace": nil, "pod": nil, "node": nil, "created_by_kind": {"DaemonSet"}, "created_by_name": {"katbox"},
	},
	"kube_pod_status_phase": {"namespace": nil, "pod": nil, "phase": {"Pending", "Running", "Succeeded", "Failed", "Unknown"}},
}

var (
	selector   = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	braces     = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|offset \w+`)
	grouping   = regexp.MustCompile(`\b(?:by|on|ignoring|without) ?\(([^)]*)\)`)
	identifier = regexp.MustCompile(`[a-zA-Z_]\w*`)
	labelsOf   = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	// made are the labels that a query makes.
	made     = regexp.MustCompile(`label_replace\(.*, "(\w+)", "[^"]*", "(\w+)", "[^"]*"\)`)
	quoted   = regexp.MustCompile(`"[^"]*"`)
	interval = regexp.MustCompile(`\$__rate_interval`)
)

// query is a PromQL expression and its place.
type query struct{ where, expr string }

// queries returns all queries of the dashboard and the rules.
func queries(t *testing.T) []query {
	t.Helper()
	var all []query
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{fmt.Sprintf("panel %q, %s", p.Title, target.RefID), target.Expr})
		}
	}
	for _, annotation := range d.Annotations.List {
		all = append(all, query{"annotation " + annotation.Name, annotation.Expr})
	}
	for _, variable := range d.Templating.List {
		if variable.Type != "query" {
			continue
		}
		m := labelsOf.FindStringSubmatch(variable.Definition)
		if m == nil {
			t.Fatalf("variable %s asks for no label: %q", variable.Name, variable.Definition)
		}
		all = append(all, query{"variable " + variable.Name, fmt.Sprintf("count by (%s) (%s)", m[2], m[1])})
	}
	for _, r := range readRules(t) {
		all = append(all, query{"alert " + r.Alert, r.Expr})
	}
	return all
}

// gather returns the metrics of a daemon, of a gateway and of a controller by their names in queries, with their labels and the
// labels' values.
func gather(t *testing.T) map[string]map[string][]string {
	t.Helper()
	m := metrics.New("v1.2.3", "0123abc")
	m.Registered(true)
	call := m.Method("NodePublishVolume")
	call.CallBegan()
	call.CallEnded("OK", time.Second)
	m.ReadRequested("bytes", "complete")
	m.ReadRequested("grep", "complete")
	m.OutcomeSource("kubelet", true)
	m.QuotaIs("none")
	m.PolicyRead(true)
	m.LogsFollowed()
	m.LogsKept(2, 1, false)
	m.ArchiveWaiting(volume.Waiting{})
	m.ArchiveFailed("bucket")
	m.ArraysServed()
	m.LocalServed()
	m.LocalRegistered(true)
	m.LocalMethod("NodeStageVolume").CallEnded("OK", time.Second)
	m.LocalOperation("make", time.Second, nil)
	m.LocalPool(local.Pool{Class: "fast", Path: "/a"}, local.Counts{}, true)
	m.ArrayRegistered(true)
	stage := m.ArrayMethod("NodeStageVolume")
	stage.CallBegan()
	stage.CallEnded("OK", time.Second)
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	g := gatewaymetrics.New("v1.2.3", "0123abc")
	g.OutcomeSource(true)
	g.Archives()
	g.Holds()
	g.BucketUp(true)
	g.ChecksumsHeeded(true)
	g.Requested("list", "retainedvolumes", 200)
	g.CertificateEnds(gatewaymetrics.Serving, time.Unix(1, 0))
	more, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families = append(families, more...)
	c := poolmetrics.New("v1.2.3", "0123abc")
	c.Leads(true)
	c.Watched("Pool", true)
	for state, mode := range map[v1alpha1.PoolState]v1alpha1.CapacityMode{
		v1alpha1.PoolUnreachable: "alert", v1alpha1.PoolIncompatible: "protected", v1alpha1.PoolFailed: "emergency", v1alpha1.PoolReady: "normal",
	} {
		var p v1alpha1.Pool
		p.Name, p.Status.State, p.Status.Capacity.Mode = string(state), state, mode
		c.Pool(&p)
	}
	for _, err := range []error{nil, volume.ErrUncertain, volume.ErrUnavailable, volume.ErrNoSpace, errors.New("odd")} {
		c.OperationEnded("create", time.Second, err)
	}
	c.Called("GET", "volumes/{id}", "ok", time.Second)
	c.Method("CreateVolume").CallBegan()
	c.Method("CreateVolume").CallEnded("OK", time.Second)
	last, err := c.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families = append(families, last...)
	all := maps.Clone(ofOthers)
	for _, family := range families {
		labels := map[string][]string{}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = append(labels[label.GetName()], label.GetValue())
			}
		}
		if family.GetType().String() != "HISTOGRAM" {
			all[family.GetName()] = labels
			continue
		}
		all[family.GetName()+"_count"], all[family.GetName()+"_sum"] = labels, labels
		buckets := maps.Clone(labels)
		buckets["le"] = nil
		for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
			buckets["le"] = append(buckets["le"], fmt.Sprint(bucket.GetUpperBound()))
		}
		all[family.GetName()+"_bucket"] = buckets
	}
	return all
}

// metricsIn returns the words in a query that are neither PromQL's nor labels.
func metricsIn(expr string) []string {
	expr = quoted.ReplaceAllString(selector.ReplaceAllString(expr, "$1"), "")
	expr = braces.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
	return slices.DeleteFunc(identifier.FindAllString(expr, -1), func(name string) bool { return slices.Contains(words, name) })
}

func TestQueriesUseWhatTheDaemonHas(t *testing.T) {
	metrics := gather(t)
	for _, q := range queries(t) {
		names := metricsIn(q.expr)
		if len(names) == 0 {
			t.Errorf("%s: no metric in %s", q.where, q.expr)
		}
		grouped := []string{"job", "instance"}
		for _, name := range names {
			labels, ok := metrics[name]
			if !ok {
				t.Errorf("%s: the daemon has no metric %s", q.where, name)
			}
			grouped = slices.AppendSeq(grouped, maps.Keys(labels))
		}
		for _, m := range made.FindAllStringSubmatch(q.expr, -1) {
			grouped = append(grouped, m[1])
		}
		for _, m := range grouping.FindAllStringSubmatch(q.expr, -1) {
			for _, label := range identifier.FindAllString(m[1], -1) {
				if !slices.Contains(grouped, label) {
					t.Errorf("%s: no metric in it has the label %s", q.where, label)
				}
			}
		}
		for _, s := range selector.FindAllStringSubmatch(q.expr, -1) {
			for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
				checkMatcher(t, q.where, s[1], metrics[s[1]], m[1], m[3])
			}
		}
	}
}

// checkMatcher checks that a metric can have a label with each of the values.
func checkMatcher(t *testing.T, where, metric string, labels map[string][]string, label, values string) {
	t.Helper()
	for value := range strings.SplitSeq(values, "|") {
		var ok bool
		switch label {
		case "job":
			ok = value == "katbox" || value == "katbox-gateway" || value == "katbox-controller" || value == "$job"
		case "instance":
			ok = value == "$instance"
		case "code":
			ok = isCode(value)
		case "method":
			_, ok = reflect.TypeFor[*inline.Driver]().MethodByName(value)
		case "alertname":
			ok = value == "Katbox.*"
		default:
			ok = slices.Contains(labels[label], value)
		}
		if !ok {
			t.Errorf("%s: %s has no label %s with the value %s", where, metric, label, value)
		}
	}
}

func isCode(name string) bool {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if code.String() == name {
			return true
		}
	}
	return false
}

// deprecated are old names of metrics, which stay for one release.
var deprecated = []string{"katbox_pressure_factor"}

// TestEveryMetricIsWatched: a metric that no panel and no alert uses need not be counted.
func TestEveryMetricIsWatched(t *testing.T) {
	var used []string
	for _, q := range queries(t) {
		used = append(used, metricsIn(q.expr)...)
	}
	histogramPart := regexp.MustCompile(`_(bucket|sum|count)$`)
	for i, name := range used {
		used[i] = histogramPart.ReplaceAllString(name, "")
	}
	for name := range gather(t) {
		name = histogramPart.ReplaceAllString(name, "")
		if strings.HasPrefix(name, "katbox_") && slices.Contains(used, name) == slices.Contains(deprecated, name) {
			t.Errorf("dashboard and rules use %s: %t", name, slices.Contains(used, name))
		}
	}
}

// TestQueriesParse: promtool reads them all, as rules.
func TestQueriesParse(t *testing.T) {
	promtool := os.Getenv("PROMTOOL")
	if promtool == "" {
		t.Skip("this machine lacks promtool: PROMTOOL does not name it; make monitoring-check does")
	}
	type record struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string   `json:"name"`
		Rules []record `json:"rules"`
	}
	var groups []group
	for _, q := range queries(t) {
		groups = append(groups, group{q.where, []record{{"query", interval.ReplaceAllString(q.expr, "5m")}}})
	}
	rules, err := json.Marshal(map[string]any{"groups": groups})
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(promtool, "check", "rules", "--lint=none")
	check.Stdin = strings.NewReader(string(rules))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
