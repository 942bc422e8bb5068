//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usedByPrograms returns how much CPU time the processes of this machine have had, by program.
func usedByPrograms(t *testing.T) map[string]time.Duration {
	t.Helper()
	used := map[string]time.Duration{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		line, err2 := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || err2 != nil || len(line) == 0 {
			continue // it has ended
		}
		words := strings.Split(string(line), "\x00")
		name := filepath.Base(words[0])
		if name == "rkube" && len(words) > 1 { // all of Kubernetes is one program
			name = words[1]
		}
		// Behind the name, which may have spaces: user and system time are the 12th and 13th.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			used[name] += time.Duration(n) * time.Second / ticks
		}
	}
	return used
}

// usedSince says which programs have used most of the CPU, in cores.
func usedSince(t *testing.T, before map[string]time.Duration, took time.Duration) string {
	t.Helper()
	after := usedByPrograms(t)
	for name := range after {
		after[name] -= before[name]
	}
	var words []string
	for i, name := range largest(after) {
		if cores := after[name].Seconds() / took.Seconds(); i < 12 && cores >= 0.005 {
			words = append(words, fmt.Sprintf("%s %.2f", name, cores))
		}
	}
	return strings.Join(words, ", ")
}

// largest returns the keys of a map, the one with the largest value first.
func largest[V cmp.Ordered](of map[string]V) []string {
	return slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
}

// requestsSince says how many requests each client has sent to the API server for each of a number of claims.
func (p *poolsCluster) requestsSince(began time.Time, claims int) string {
	p.t.Helper()
	count := map[string]int{}
	p.answeredSince(began, func(r request) { count[r.by()+" "+r.what()]++ })
	var words []string
	for _, what := range largest(count) {
		if each := float64(count[what]) / float64(claims); each >= 0.1 {
			words = append(words, fmt.Sprintf("%s %.1f", what, each))
		}
	}
	return strings.Join(words, "; ")
}
