package monitoring

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// dashboard is what the tests need of dashboard.json.
type dashboard struct {
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type, Definition, Description, AllValue string

			Datasource datasource
		}
	}
	Annotations struct {
		List []struct {
			Name, Expr string
			Datasource datasource
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               datasource
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct {
		RefID        string
		Expr         string
		LegendFormat string
		Datasource   datasource
	}
}

type datasource struct{ Type, UID string }

// ruleFile is rules.yaml.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// ruleTests is what the tests need of rules_test.yaml.
type ruleTests struct {
	Tests []struct {
		Name   string
		Series []struct{ Series string } `yaml:"input_series"`
		Exprs  []struct {
			Expr    string
			Samples []struct{ Labels string } `yaml:"exp_samples"`
		} `yaml:"promql_expr_test"`
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, "dashboard.json"), &d); err != nil {
		t.Fatalf("dashboard.json: %v", err)
	}
	return d
}

func readYAML[T any](t *testing.T, name string, strict bool) T {
	t.Helper()
	var content T
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, name)))
	decoder.KnownFields(strict)
	if err := decoder.Decode(&content); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return content
}

func readRules(t *testing.T) []rule {
	t.Helper()
	var rules []rule
	for _, group := range readYAML[ruleFile](t, "rules.yaml", true).Groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("rules.yaml has no rules")
	}
	return rules
}
