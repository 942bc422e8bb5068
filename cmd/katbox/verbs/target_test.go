package verbs

import (
	"strings"
	"testing"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/lib/paths"
)

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]target{
		"etl/nightly":              {namespace: "etl", pod: "nightly"},
		"etl/nightly/scratch":      {namespace: "etl", pod: "nightly", volume: "scratch"},
		"etl/nightly:":             {namespace: "etl", pod: "nightly", hasPath: true},
		"etl/nightly:/":            {namespace: "etl", pod: "nightly", hasPath: true},
		"etl/nightly:out/log.txt":  {namespace: "etl", pod: "nightly", hasPath: true, path: "out/log.txt"},
		"etl/nightly:/out/":        {namespace: "etl", pod: "nightly", hasPath: true, path: "out"},
		"etl/a.b-c/v:12:30:00.log": {namespace: "etl", pod: "a.b-c", volume: "v", hasPath: true, path: "12%3A30%3A00.log"},
		"etl/nightly:a/b:c/d":      {namespace: "etl", pod: "nightly", hasPath: true, path: "a/b%3Ac/d"},
		"etl/nightly:100%":         {namespace: "etl", pod: "nightly", hasPath: true, path: "100%25"},
		"etl/nightly:a\nb\xff":     {namespace: "etl", pod: "nightly", hasPath: true, path: "a%0Ab%FF"},
		"etl/nightly::a%0Ab%FF":    {namespace: "etl", pod: "nightly", hasPath: true, path: "a%0Ab%FF"},
		"etl/nightly:::a":          {namespace: "etl", pod: "nightly", hasPath: true, path: "%3Aa"},
		"etl/nightly:/:a":          {namespace: "etl", pod: "nightly", hasPath: true, path: "%3Aa"},
		id(1):                      {id: id(1)},
		id(1) + ":out":             {id: id(1), hasPath: true, path: "out"},
		"lost_And.Found:x":         {id: "lost_And.Found", hasPath: true, path: "x"},
	} {
		if got, err := parseTarget(text); err != nil || got != want {
			t.Errorf("parseTarget(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ":", ":path", "/", "/pod", "etl/", "etl//scratch", "etl/nightly/", "etl/nightly/scratch/more",
		"etl/nightly/scratch/out/log.txt", "ETL/nightly",
		"etl/night ly", "etl/nightly\x1b[2J", "..", ".hidden", "etl/nightly:..", "etl/nightly:a/../b", "etl/nightly:a//b", "etl/nightly:a\x00",
		"etl/nightly::%", "etl/nightly::a%2Fb", "etl/nightly::%2E%2E", "etl/nightly:" + strings.Repeat("x", paths.Max+1),
		strings.Repeat("x", 256),
	} {
		got, err := parseTarget(text)
		if err == nil || verbs.CodeOf(err) != verbs.CodeUsage {
			t.Errorf("parseTarget(%q) = %+v, %v, want wrong usage", text, got, err)
		}
	}
}

func TestParseSelector(t *testing.T) {
	for text, want := range map[string]target{
		"etl":         {namespace: "etl"},
		"csi-drivers": {namespace: "csi-drivers"},
		"etl/nightly": {namespace: "etl", pod: "nightly"},
		id(1):         {id: id(1)},
		"odd:x":       {id: "odd", hasPath: true, path: "x"},
	} {
		if got, err := parseSelector(text); err != nil || got != want {
			t.Errorf("parseSelector(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	if _, err := parseSelector("Etl"); err == nil {
		t.Error("Etl is taken for a namespace")
	}
}

func FuzzTarget(f *testing.F) {
	for _, text := range []string{"etl/nightly:out", "etl/nightly::a%0A", "etl/nightly:/:a", id(1) + ":x", "a/b/c:d:e"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseTarget(text)
		if err != nil || !first.hasPath {
			return
		}
		path, err := paths.ParseRef(first.path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTarget(first.String() + ":" + verbs.FormatPath(path.String(), path.Ref()))
		if err != nil || again != first {
			t.Errorf("%q is %+v; written again, it is %+v, %v", text, first, again, err)
		}
	})
}
