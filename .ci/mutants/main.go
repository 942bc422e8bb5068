package main

import (
	"context"
	"errors"
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
	root, work, tests, only string
	share                   float64
	seed                    uint64
	jobs                    int
	budget, limit           time.Duration
	list                    bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "directory of the module")
	flag.StringVar(&o.work, "work", "/var/tmp", "directory for all that is made; it is empty again at the end")
	flag.StringVar(&o.tests, "tests", "", "packages whose tests run as well, with commas; those of the packages themselves always do")
	flag.StringVar(&o.only, "only", "", "take only mutants whose line this regular expression matches")
	flag.Float64Var(&o.share, "share", 1, "which share of the mutants is tried")
	flag.Uint64Var(&o.seed, "seed", 1, "decides which ones")
	flag.IntVar(&o.jobs, "jobs", 1, "how many are tried at a time")
	flag.DurationVar(&o.budget, "budget", 2*time.Minute, "how much time of tests each gets at most, by how long they take without it")
	flag.DurationVar(&o.limit, "for", 24*time.Hour, "begin with no mutant after so long; they come in an order that the seed decides")
	flag.BoolVar(&o.list, "list", false, "print the mutants and try none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, o, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, patterns []string) (err error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(o.work, "mutants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	mutants, overlay, err := instrument(ctx, root, work, patterns)
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
	binaries, err := prepare(ctx, root, work, overlay, patterns, len(mutants))
	if err != nil {
		return err
	}
	all, err := tryAll(ctx, o, work, binaries, chosen)
	report(all)
	return err
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d:%d %s: %s", m.pos.Filename, m.pos.Line, m.pos.Column, m.function, m.what)
}

// prepare compiles the tests and runs each of them alone, and then all together. A package without one that passes
// is an error: nothing would be found out about its mutants.
func prepare(ctx context.Context, root, work, overlay string, patterns []string, mutants int) ([]*binary, error) {
	packages, _, err := list(ctx, root, patterns)
	if err != nil {
		return nil, err
	}
	var binaries []*binary
	for i, p := range packages {
		b := &binary{pkg: p.ImportPath, dir: p.Dir, path: filepath.Join(work, fmt.Sprintf("%d.test", i))}
		if err := compile(ctx, root, overlay, p.ImportPath, b.path); err != nil {
			return nil, err
		}
		if _, err := os.Stat(b.path); err != nil {
			continue // it has no tests
		}
		failing, err := b.measure(ctx, mutants)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		var sum time.Duration
		for _, t := range b.tests {
			sum += t.took
		}
		fmt.Printf("%s: %d tests, %s; %d fail in the sandbox\n", p.ImportPath, len(b.tests), sum.Round(time.Second), len(failing))
		for _, f := range failing {
			fmt.Printf("    %s\n", f)
		}
		if len(b.tests) == 0 && len(failing) > 0 {
			return nil, fmt.Errorf("%s: none of its %d tests passes in the sandbox", p.ImportPath, len(failing))
		}
		binaries = append(binaries, b)
	}
	return binaries, nil
}

// tryAll prints what became of each mutant as soon as that is known. It ends with ctx, and with the first error.
func tryAll(ctx context.Context, o options, work string, binaries []*binary, chosen []mutant) (all []verdict, err error) {
	signals := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	next := make(chan mutant)
	var mu sync.Mutex // for all
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
				v, err := try(ctx, box, order, m, o.budget)
				if err != nil {
					fail(fmt.Errorf("%s: %w", m, err))
					return
				}
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
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	if signals.Err() != nil {
		return all, fmt.Errorf("%w: %d mutants were not tried", errInterrupted, len(chosen)-len(all))
	}
	return all, context.Cause(ctx)
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
