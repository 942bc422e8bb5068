package policy

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"testing"
)

// TestPatternIsThatOfPath: what comes before the wildcard only saves time.
func TestPatternIsThatOfPath(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(of string) string {
		b := make([]byte, rng.IntN(5))
		for i := range b {
			b[i] = of[rng.IntN(len(of))]
		}
		return string(b)
	}
	matched := 0
	for range 20_000 {
		glob, namespace := text("ab-*?"), text("ab-")
		want, err := path.Match(glob, namespace)
		if got := newPattern(glob).matches(namespace); err != nil || got != want {
			t.Errorf("%q matches %q: %t, want %t", glob, namespace, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matched", matched)
	}
}

// many returns a policy with a number of patterns, of which the last one matches what begins with any.
func many(t testing.TB, patterns int) *Policy {
	t.Helper()
	var file strings.Builder
	file.WriteString("namespaces:\n")
	for i := range patterns - 1 {
		fmt.Fprintf(&file, "- match: [team-%d-*]\n", i)
	}
	file.WriteString("- match: ['any*']\n  lifespan: 1h\n")
	p, err := Parse(flags(), []byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNamespaceIsMatchedOnce: by any goroutine, and in advance for what the last policy was asked about.
func TestNamespaceIsMatchedOnce(t *testing.T) {
	p, next, later := many(t, 100), many(t, 100), many(t, 100)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, namespace := range []string{"any-1", "other"} {
				p.Bounds(namespace)
			}
		})
	}
	all.Wait()
	next.Prepare(p)
	later.Prepare(next)
	for _, p := range []*Policy{p, next, later} {
		clear(p.entries[len(p.entries)-1].match) // nothing matches any more
		for namespace, want := range map[string]Bounds{"any-1": p.entries[len(p.entries)-1].bounds, "other": p.flags, "any-2": p.flags} {
			if got := p.Bounds(namespace); got.Lifespan != want.Lifespan {
				t.Errorf("%s has %+v, want %+v", namespace, got, want)
			}
		}
	}
}

// TestMatchesAreBounded: namespaces that come and go take no memory without end.
func TestMatchesAreBounded(t *testing.T) {
	p := many(t, 2)
	for i := range 2*maxMatches + 1 {
		if got := p.Bounds(fmt.Sprint("any-", i)); got.Lifespan != hour {
			t.Fatalf("namespace %d has %+v", i, got)
		}
	}
	if n := len(p.matches.known); n > maxMatches {
		t.Errorf("%d namespaces are remembered, want at most %d", n, maxMatches)
	}
}

// BenchmarkBounds asks about 10,000 namespaces with 5,000 patterns: for the first time, and again.
func BenchmarkBounds(b *testing.B) {
	const namespaces = 10_000
	p := many(b, 5_000)
	b.Run("first", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			p.match(fmt.Sprintf("team-%d-x", i%namespaces))
		}
	})
	names := make([]string, namespaces)
	for i := range names {
		names[i] = fmt.Sprintf("team-%d-x", i)
	}
	b.Run("again", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			p.Bounds(names[i%namespaces])
		}
	})
}
