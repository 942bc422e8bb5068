// Command mutants changes the code in many small ways, one at a time, and runs the tests against
// each change: "mutants [FLAGS] PACKAGE...". What no test notices is printed. It needs root.
package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	root, tests, only string
	share             float64
	seed              uint64
	jobs              int
	budget, limit     time.Duration
	list              bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "directory of the module")
	flag.StringVar(&o.tests, "tests", "", "packages whose tests run as well, with commas; those of the packages themselves always do")
	flag.StringVar(&o.only, "only", "", "take only mutants whose line this regular expression matches")
	flag.Float64Var(&o.share, "share", 1, "which share of the mutants is tried")
	flag.Uint64Var(&o.seed, "seed", 1, "decides which ones")
	flag.IntVar(&o.jobs, "jobs", 1, "how many are tried at a time")
	flag.DurationVar(&o.budget, "budget", 2*time.Minute, "how much time of tests each gets at most, by how long they take without it")
	flag.DurationVar(&o.limit, "for", 24*time.Hour, "begin with no mutant after so long; they come in an order that the seed decides")
	flag.BoolVar(&o.list, "list", false, "print the mutants and try none")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(o options, patterns []string) error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("/var/tmp", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mutants, overlay, err := instrument(root, work, patterns)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	var chosen []mutant
	random := rand.New(rand.NewPCG(o.seed, 0))
	for _, m := range mutants {
		m.pos.Filename = strings.TrimPrefix(m.pos.Filename, root+"/")
		if random.Float64() < o.share && only.MatchString(m.String()) {
			chosen = append(chosen, m)
		}
	}
	random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	fmt.Printf("%d mutants, %d of them chosen by seed %d\n", len(mutants), len(chosen), o.seed)
	if o.list {
		for _, m := range chosen {
			fmt.Println(m)
		}
		return nil
	}
	for name := range strings.SplitSeq(o.tests, ",") {
		if name != "" {
			patterns = append(patterns, name)
		}
	}
	binaries, err := prepare(root, work, overlay, patterns, len(mutants))
	if err != nil {
		return err
	}
	report(tryAll(o, work, binaries, chosen))
	return nil
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d:%d %s: %s", m.pos.Filename, m.pos.Line, m.pos.Column, m.function, m.what)
}

// prepare compiles the tests and runs each of them once.
func prepare(root, work, overlay string, patterns []string, mutants int) ([]*binary, error) {
	packages, _, err := list(root, patterns)
	if err != nil {
		return nil, err
	}
	var binaries []*binary
	for i, p := range packages {
		b := &binary{pkg: p.ImportPath, dir: p.Dir, path: filepath.Join(work, fmt.Sprintf("%d.test", i))}
		if err := compile(root, overlay, p.ImportPath, b.path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(b.path); err != nil {
			continue // it has no tests
		}
		failing, err := b.measure(mutants)
		if err != nil {
			return nil, err
		}
		var sum time.Duration
		for _, t := range b.tests {
			sum += t.took
		}
		fmt.Printf("%s: %d tests, %s; %d fail in the sandbox\n", p.ImportPath, len(b.tests), sum.Round(time.Second), len(failing))
		for _, f := range failing {
			fmt.Printf("    %s\n", f)
		}
		binaries = append(binaries, b)
	}
	return binaries, nil
}

// tryAll prints each mutant that is not caught as soon as that is known.
func tryAll(o options, work string, binaries []*binary, chosen []mutant) []verdict {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	next := make(chan mutant)
	var mu sync.Mutex // for all
	var all []verdict
	var wg sync.WaitGroup
	for job := range o.jobs {
		box := filepath.Join(work, fmt.Sprintf("box%d", job))
		wg.Go(func() {
			for m := range next {
				// The tests of its own package come first.
				var order []*binary
				for _, own := range []bool{true, false} {
					for _, b := range binaries {
						if (b.pkg == m.pkg) == own {
							order = append(order, b)
						}
					}
				}
				v := try(box, order, m, o.budget)
				mu.Lock()
				all = append(all, v)
				fmt.Printf("%-10s %s [%d tests] %s\n", v.outcome, v.mutant, v.tests, v.by)
				mu.Unlock()
			}
		})
	}
	begun := time.Now()
	for i, m := range chosen {
		if time.Since(begun) > o.limit {
			fmt.Printf("the time is over: %d mutants were not tried\n", len(chosen)-i)
			break
		}
		select {
		case next <- m:
			continue
		case <-interrupted:
			fmt.Printf("interrupted: %d mutants were not tried\n", len(chosen)-i)
		}
		break
	}
	close(next)
	wg.Wait()
	return all
}

// report says how many of each package there are.
func report(all []verdict) {
	counts := make(map[string]map[string]int)
	for _, v := range all {
		if counts[v.pkg] == nil {
			counts[v.pkg] = make(map[string]int)
		}
		counts[v.pkg][v.outcome]++
	}
	for _, pkg := range slices.Sorted(maps.Keys(counts)) {
		n := counts[pkg]
		fmt.Printf("%s: %d caught, %d without an end in time, %d passed, %d passed what the budget allowed, %d reached by no test\n",
			pkg, n["caught"], n["late"], n["passed"], n["unfinished"], n["unreached"])
	}
}
