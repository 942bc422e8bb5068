package api

import (
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	for pattern, ok := range map[string]bool{
		"CUDA error": true, `\bOOM\b|killed`: true, "a{3,}": true, `^\pL+$`: true, "(?s:.)": true, "": false, "(": false, "(?<x": false,
		"a{1001}": false, strings.Repeat("a", 1025): false, strings.Repeat("a|", 500) + "b": true,
		"(?:abcdefghij){1000}": false, "((a{30}){30}){30}": false, "(?:a?){300}(?:a{300})": true, "(?:a?){400}(?:a{400})": false,
		strings.Repeat("(", 200) + "a" + strings.Repeat(")", 200): true,
	} {
		compiled, err := Grep{Pattern: pattern}.Compile()
		if (err == nil) != ok || ok && (compiled.Size < 1 || compiled.Size > mostProgram) {
			t.Errorf("%.60q: %+v, %v, want %v", pattern, compiled.Size, err, ok)
		}
	}
	compiled, err := Grep{Pattern: "cuda|oom", IgnoreCase: true}.Compile()
	if err != nil || !compiled.MatchString("OOM") {
		t.Errorf("either case: %v", err)
	}
}

func TestGlob(t *testing.T) {
	for glob, paths := range map[string][2][]string{
		"*.log":       {{"a.log", "x/y/.log", "x/new\nline.log", "\xff.log"}, {"a.logs", "a.log/b"}},
		"out/*.log":   {{"out/a.log"}, {"a.log", "x/out/a.log", "out/x/a.log"}},
		"/out/?":      {{"out/a", "out/\u00e9"}, {"out/ab", "out/"}},
		"**/out/**":   {{"out/a", "x/out/a/b"}, {"out", "xout/a"}},
		"a+(b)[c].$":  {{"a+(b)[c].$", "x/a+(b)[c].$"}, {"aa(b)c."}},
		"main/**.log": {{"main/0.log", "main/x/0.log"}, {"main/0.log.gz"}},
	} {
		compiled, err := ParseGlob(glob)
		if err != nil {
			t.Errorf("%q: %v", glob, err)
			continue
		}
		for i, all := range paths {
			for _, path := range all {
				if compiled.MatchString(path) != (i == 0) {
					t.Errorf("%q matches %q: %v", glob, path, i != 0)
				}
			}
		}
	}
}

// TestSums: what a node says of itself counts once, and overflows nothing.
func TestSums(t *testing.T) {
	var sums GrepSums
	for range 3 {
		sums.Add(GrepSums{Files: 1 << 62, Bytes: -5, Lines: 2, Stopped: map[string]int64{StopTime: 1 << 60, "made up": 1, StopBytes: -1}})
	}
	if sums.Files != mostSum || sums.Bytes != 0 || sums.Lines != 6 || len(sums.Stopped) != 1 || sums.Stopped[StopTime] != 3 {
		t.Errorf("%+v", sums)
	}
}
