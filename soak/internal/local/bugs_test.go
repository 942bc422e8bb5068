package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestEachBugIsFound: a player finds whatever a node does wrong with its pool, and nothing on a node that does it right.
func TestEachBugIsFound(t *testing.T) {
	for b, want := range map[bug]string{
		"":                                  "",
		full:                                "",
		"forgets deletions":                 "that may only be: nothing",
		"forgets growth":                    "should have between",
		"forgets what is retained":          "that may only be: volume, held as",
		"makes larger volumes":              "should have between",
		"promises too much":                 "has promised",
		"refuses decisions":                 "/comment: Failed: a decision is not taken",
		"gives no room back":                "has promised",
		"leaves records":                    "and there is still",
		"copies nothing":                    "marker 1 of",
		"takes empty snapshots":             "marker 1 of",
		"takes snapshots of another volume": "it is a snapshot of another",
		"never completes a snapshot":        "it is not whole, and stays so",
		"loses a marker":                    "marker 1 of",
		"limits nothing":                    "and a pod can write",
		"gives too little room":             "and a pod can write",
		"expands nothing":                   "and a pod can write",
		"expands to less":                   "was expanded to",
		"stages what is retained":           "it is retained, and staging it was answered with",
	} {
		t.Run(cmp.Or(string(b), "does all right"), func(t *testing.T) {
			t.Parallel()
			if found := played(t, b); (want == "") != (found == "") || !strings.Contains(found, want) {
				t.Errorf("%.2000s; want %q", found, want)
			}
		})
	}
}

// played is what a player finds of a node.
func played(t *testing.T, b bug) string {
	t.Helper()
	cfg := startNode(t, b)
	cfg.FSType, cfg.Prefix = "ext4", "test"
	p, err := NewPlayer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.settle = time.Second
	ctx := t.Context()
	if err := p.Open(ctx); err != nil {
		t.Fatal(err)
	}
	failed := make([]error, 2)
	var workers sync.WaitGroup
	for w := range failed {
		workers.Go(func() {
			for pod := 0; pod < 5 && failed[w] == nil; pod++ {
				failed[w] = p.live(ctx, fmt.Sprintf("%08d-0000-4000-8000-%012d", w, pod), rand.New(rand.NewPCG(uint64(w), uint64(pod))))
			}
		})
	}
	workers.Wait()
	failed = append(failed, p.keep(ctx))
	wrong, err := p.Audit(ctx)
	all := fmt.Sprint(errors.Join(append(failed, err)...))
	for _, v := range wrong {
		all += "\n" + v.What
	}
	return strings.TrimPrefix(all, "<nil>")
}

// live is the life of a pod.
func (p *Player) live(ctx context.Context, pod string, random *rand.Rand) error {
	u, err := p.Begin(ctx, pod, random)
	if err != nil || u == nil {
		return err
	}
	if err := u.Work(ctx); err != nil {
		return err
	}
	return errors.Join(u.Verify(), u.End(ctx))
}

// keep makes a volume that is retained, and has a snapshot and clones.
func (p *Player) keep(ctx context.Context) error {
	const pod = "0000a0d1-0000-4000-8000-000000000001"
	v, err := p.make(ctx, testClass, 16*mebi, source{})
	if err != nil || v == nil {
		return err
	}
	target, err := p.give(ctx, v, pod)
	u := &Use{Player: p, volume: v, pod: pod, target: target, random: rand.New(rand.NewPCG(1, 2))}
	err = errors.Join(err, u.write(), u.copy(ctx))
	clone, failed := p.make(ctx, testClass, 16*mebi, source{Volume: v.name})
	if clone != nil {
		p.wait(clone)
	}
	return errors.Join(err, failed, p.leave(ctx, v, pod), p.retain(ctx, v))
}
