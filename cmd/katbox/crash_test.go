package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/katbox/katbox/internal/testing/roottest"
)

const (
	// crashesAtATime bounds how many daemons run at once. Mostly they wait for a deadline.
	crashesAtATime = 16
	// mostOccurrences: of a point that an operation reaches more often, only the first two,
	// the middle and the last time are played.
	mostOccurrences = 4
)

// outOfReach are the points that no operation reaches on every machine, and why.
var outOfReach = map[string]string{
	"store.overwriteInPlace/SetFlags": "on btrfs alone, before the file has its name",
	"store.openJournalFile/Truncate":  "where there is no room for the journal, of which nothing is left then",
	"store.setAside/RenameIn":         "where the database was moved aside; TestJournalOfAnotherDatabase reads what is set aside",

	"main.known.write/MkdirAll": "of pools on the node's disks; TestKnownPoolsSurviveACrash stops before and after each",
	"main.known.write/CreateIn": "of pools on the node's disks",
	"main.known.write/WriteAt":  "of pools on the node's disks",
	"main.known.write/Sync":     "of pools on the node's disks",
	"main.known.write/RenameIn": "of pools on the node's disks",

	"lastwords.Interrupted/Unlinkat": "where a daemon died as it copied logs that are gone by now; TestLogsAfterACrash has such ones",

	"mount.FileSystem/Mount": "of volumes of arrays; TestArrayCrashAtEveryStep reaches it",

	"quota.FileSystem.SetProject/SetXAttr":           "where the file system has project quotas; crashes there are those of TestQuotaCrash",
	"quota.FileSystem.SetLimit/SetLimit":             "where the file system has project quotas",
	"quota.FileSystem.Enforce/LimitProjects":         "where another program has turned project quotas off",
	"quota.FileSystem.throughDevice/MakeBlockDevice": "before Linux 5.14",
	"quota.FileSystem.throughDevice/Remove":          "before Linux 5.14",

	"scratch.Dir.releaseUnopened/FileSetattr": "flags of what is being deleted, from Linux 6.17",
	"scratch.clearFixed/SetFlags":             "flags of what is being deleted, where the file system has them",
	"scratch.leaveProject/SetXAttr":           "where the working directory has a project quota",
	"scratch.makeWritable/SetSubvolumeFlags":  "flags of what is being deleted, on btrfs alone",
}

// occurrence is the time-th time that an operation reaches a point.
type occurrence struct {
	point string
	time  int
}

// crashes plays operations with crashes, and counts.
type crashes struct {
	binary string
	turns  chan struct{}

	mu         sync.Mutex
	met        map[string]bool
	operations int
	played     int
}

// TestCrashAtEveryStep ends the daemon at every point that an operation reaches, starts it
// again, and checks every promise. A new step of the daemon needs an operation that reaches
// it.
func TestCrashAtEveryStep(t *testing.T) {
	roottest.Need(t)
	c := &crashes{binary: buildCrashing(t), turns: make(chan struct{}, crashesAtATime), met: map[string]bool{}}
	operations := crashOperations()
	var running sync.WaitGroup
	for i, op := range operations {
		running.Go(func() {
			t.Run(op.name, func(t *testing.T) { c.playEach(t, op, i) })
		})
	}
	running.Wait()
	t.Logf("%d operations, %d crashes at %d points", c.operations, c.played, len(c.met))
	if c.operations == len(operations) {
		c.checkAllMet(t)
	}
}

// buildCrashing builds the daemon with crash points.
func buildCrashing(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "katbox")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "crashpoints", "-o", binary, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	return binary
}

// playEach plays an operation without a crash to see which points it reaches, and then once
// for each of them with a crash there: with -short for a fifth of them, which are others for each operation.
func (c *crashes) playEach(t *testing.T, op crashOperation, nth int) {
	var trace []string
	var from int
	c.turn(func() {
		s := newScene(t, op, c.binary)
		trace, from = s.playThrough()
	})
	if t.Failed() {
		return
	}
	all := occurrences(trace, from)
	c.mu.Lock()
	c.operations++
	for _, point := range trace {
		_, name, _ := strings.Cut(point, " ")
		c.met[name] = true
	}
	c.mu.Unlock()
	var running sync.WaitGroup
	for i, o := range all {
		if testing.Short() && (i+nth)%5 != 0 || op.certain > 0 && o.time > op.certain {
			continue
		}
		running.Go(func() {
			c.turn(func() {
				t.Run(fmt.Sprintf("%s/%d", strings.NewReplacer(" ", "-", "/", "-").Replace(o.point), o.time), func(t *testing.T) {
					c.mu.Lock()
					c.played++
					c.mu.Unlock()
					newScene(t, op, c.binary).playCrash(o)
				})
			})
		})
	}
	running.Wait()
}

func (c *crashes) turn(f func()) {
	c.turns <- struct{}{}
	defer func() { <-c.turns }()
	f()
}

// occurrences returns the points of a trace to play, in order. Points before from count,
// but other operations play them.
func occurrences(trace []string, from int) []occurrence {
	total, seen := map[string]int{}, map[string]int{}
	for _, point := range trace {
		total[point]++
	}
	var all []occurrence
	for i, point := range trace {
		seen[point]++
		time, last := seen[point], total[point]
		if i >= from && (last <= mostOccurrences || slices.Contains([]int{1, 2, (last + 1) / 2, last}, time)) {
			all = append(all, occurrence{point: point, time: time})
		}
	}
	return all
}

// checkAllMet compares the points that were reached with those in the source.
func (c *crashes) checkAllMet(t *testing.T) {
	for _, wrong := range compare(pointsInSource(t), c.met, outOfReach) {
		t.Error(wrong)
	}
}

// pointsInSource returns the names of all crash points. Those of volumes of arrays are TestArrayCrashAtEveryStep's.
func pointsInSource(t *testing.T) []string {
	t.Helper()
	all := pointsBelow(t, "../../", "actors", "cmd", "internal")
	if len(all) < 30 {
		t.Errorf("only %d crash points, are they found? %q", len(all), all)
	}
	return all
}

// pointsBelow returns the names of the crash points in some rooms: the changes of package kernel and
// the functions that make them. The linter forbids changes elsewhere.
func pointsBelow(t *testing.T, root string, rooms ...string) []string {
	t.Helper()
	change := regexp.MustCompile(`\bdo\("(\w+)"`)
	changes := map[string]bool{}
	eachLine(t, root+"internal/lib/kernel", func(_, line string) {
		if c := change.FindStringSubmatch(line); c != nil {
			changes[c[1]] = true
		}
	})
	function := regexp.MustCompile(`^func (?:\(\w+ \*?(\w+)\) )?(\w+)`)
	use := regexp.MustCompile(`\bkernel\.(\w+)`)
	all := map[string]bool{}
	for _, room := range rooms {
		caller := ""
		eachLine(t, root+room, func(pkg, line string) {
			if f := function.FindStringSubmatch(line); f != nil {
				caller = strings.Replace(pkg+"."+f[1]+"."+f[2], "..", ".", 1)
			}
			for _, u := range use.FindAllStringSubmatch(line, -1) {
				if changes[u[1]] {
					all[caller+"/"+u[1]] = true
				}
			}
		})
	}
	return slices.Sorted(maps.Keys(all))
}

// eachLine calls f with every line of the daemon's source below dir, and its package.
func eachLine(t *testing.T, dir string, f func(pkg, line string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && path != dir && slices.Contains([]string{"testing", "attach", "local", "localdisk"}, entry.Name()) {
			return fs.SkipDir // the first is for tests, the others have crash tests of their own
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		pkg := ""
		for line := range strings.Lines(string(content)) {
			if name, ok := strings.CutPrefix(line, "package "); ok {
				pkg = strings.TrimSpace(name)
			}
			f(pkg, line)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compare reports points that were not met and are not excused, and excuses for points that
// do not exist.
func compare(all []string, met map[string]bool, excused map[string]string) (wrong []string) {
	for _, name := range all {
		if _, excuse := excused[name]; !met[name] && !excuse {
			wrong = append(wrong, "no operation reaches "+name+"; write one")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(excused)) {
		if !slices.Contains(all, name) {
			wrong = append(wrong, name+" is no point any more; take it off the list")
		}
	}
	return wrong
}

func TestCompare(t *testing.T) {
	got := compare([]string{"a", "b", "c", "d"}, map[string]bool{"a": true, "c": true}, map[string]string{"c": "x", "d": "x", "e": "x"})
	want := []string{"no operation reaches b; write one", "e is no point any more; take it off the list"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOccurrences(t *testing.T) {
	trace := slices.Concat([]string{"a", "b"}, slices.Repeat([]string{"x"}, 7), []string{"b"})
	want := []occurrence{{"b", 1}, {"x", 1}, {"x", 2}, {"x", 4}, {"x", 7}, {"b", 2}}
	if got := occurrences(trace, 1); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
