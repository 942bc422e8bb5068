package monitoring

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"testing"
)

// columns is the width of Grafana's grid.
const columns = 24

// TestDashboardIsFormatted: an export from Grafana, formatted anew, differs only in what was
// changed.
func TestDashboardIsFormatted(t *testing.T) {
	content := read(t, "dashboard.json")
	var want bytes.Buffer
	if err := json.Indent(&want, content, "", "  "); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want.Bytes(), content) {
		t.Error("dashboard.json is not indented by two spaces")
	}
}

func TestPanels(t *testing.T) {
	panels := readDashboard(t).Panels
	if len(panels) == 0 {
		t.Fatal("no panels")
	}
	ids, titles := map[int]string{}, map[string]bool{}
	for _, p := range panels {
		if other, ok := ids[p.ID]; ok {
			t.Errorf("%q and %q have the same id %d", other, p.Title, p.ID)
		}
		if p.ID == 0 || p.Title == "" || titles[p.Title] {
			t.Errorf("panel %d %q has no id, or no title of its own", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = p.Title, true
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%q has no description or no query", p.Title)
		}
		if p.FieldConfig.Defaults.Unit == "" && p.Type != "table" {
			t.Errorf("%q has no unit", p.Title)
		}
		for _, target := range p.Targets {
			if target.LegendFormat == "" && p.Type == "timeseries" {
				t.Errorf("query %s of %q has no legend", target.RefID, p.Title)
			}
		}
	}
}

// TestEverythingAsksTheChosenDataSource: the one of another installation does not exist.
func TestEverythingAsksTheChosenDataSource(t *testing.T) {
	d := readDashboard(t)
	asked := map[string]datasource{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			asked[p.Title], asked[p.Title+", "+target.RefID] = p.Datasource, target.Datasource
		}
	}
	for _, annotation := range d.Annotations.List {
		asked[annotation.Name] = annotation.Datasource
	}
	for _, variable := range d.Templating.List {
		if variable.Type == "query" {
			asked["variable "+variable.Name] = variable.Datasource
		}
	}
	for who, source := range asked {
		if source != (datasource{"prometheus", "${datasource}"}) {
			t.Errorf("%s asks %+v", who, source)
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	panels := readDashboard(t).Panels
	for i, p := range panels {
		at := p.GridPos
		if at.W <= 0 || at.H <= 0 || at.X < 0 || at.Y < 0 || at.X+at.W > columns {
			t.Errorf("%q is not on the grid: %+v", p.Title, at)
		}
		for _, other := range panels[:i] {
			o := other.GridPos
			if at.X < o.X+o.W && o.X < at.X+at.W && at.Y < o.Y+o.H && o.Y < at.Y+at.H {
				t.Errorf("%q and %q overlap", other.Title, p.Title)
			}
		}
	}
}

func TestVariablesAreDeclared(t *testing.T) {
	// Grafana's own.
	declared := []string{"__rate_interval", "__all"}
	for _, variable := range readDashboard(t).Templating.List {
		declared = append(declared, variable.Name)
		if variable.Description == "" {
			t.Errorf("variable %s has no description", variable.Name)
		}
	}
	used := regexp.MustCompile(`\$\{?(\w+)`).FindAllSubmatch(read(t, "dashboard.json"), -1)
	for _, want := range []string{"datasource", "job", "instance"} {
		if !slices.ContainsFunc(used, func(m [][]byte) bool { return string(m[1]) == want }) {
			t.Errorf("variable %s is not used", want)
		}
	}
	for _, m := range used {
		if !slices.Contains(declared, string(m[1])) {
			t.Errorf("there is no variable %s", m[1])
		}
	}
}

// TestAllIsNotEverything: metrics of every process, such as memory, are selected by the job,
// and "All" means the jobs of Katbox's daemons.
func TestAllIsNotEverything(t *testing.T) {
	for _, variable := range readDashboard(t).Templating.List {
		if variable.Name != "job" {
			continue
		}
		all := regexp.MustCompile("^(?:" + variable.AllValue + ")$")
		if variable.AllValue == "" || !all.MatchString("katbox") || all.MatchString("node-exporter") || all.MatchString("katbox-gateway") ||
			all.MatchString("katbox-controller") || !all.MatchString("katbox-ci") ||
			!all.MatchString("katbox-prod") {
			t.Errorf("all jobs are %q", variable.AllValue)
		}
	}
}
