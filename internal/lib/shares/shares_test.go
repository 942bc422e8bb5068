package shares

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fill takes as many slots as a party gets, and returns how to release them.
func fill(t *testing.T, s *Shares, of string) (releases []func()) {
	t.Helper()
	for {
		release, err := s.Take(of)
		if err != nil {
			return releases
		}
		releases = append(releases, release)
	}
}

// TestHalfOfTheRest: each party that comes gets half of what those before have left.
func TestHalfOfTheRest(t *testing.T) {
	s := New(32, 32, 0)
	var all [][]func()
	for i, want := range []int{16, 8, 4, 2, 1, 1, 0} {
		got := fill(t, s, fmt.Sprint("p", i))
		if all = append(all, got); len(got) != want {
			t.Errorf("party %d gets %d slots, want %d", i, len(got), want)
		}
	}
	if _, err := s.Take("p0"); !errors.Is(err, ErrFull) {
		t.Errorf("with none free: %v", err)
	}
	for _, releases := range all {
		for _, release := range releases {
			release()
			release() // counts once
		}
	}
	if all, own := s.Taken("p0"); all != 0 || own != 0 || len(s.parties) != 0 {
		t.Errorf("at the end %d slots are taken, %d of one, and %d parties are remembered", all, own, len(s.parties))
	}
}

// TestMostOfOne: one party gets no more than its bound, however much is free.
func TestMostOfOne(t *testing.T) {
	s := New(1000, 8, 0)
	if n := len(fill(t, s, "a")); n != 8 {
		t.Errorf("it gets %d slots", n)
	}
	if _, err := s.Take("a"); !errors.Is(err, ErrShare) {
		t.Errorf("got %v", err)
	}
	if all, own := s.Taken("a"); all != 8 || own != 8 || s.Slots() != 1000 {
		t.Errorf("%d are taken, %d by it, of %d", all, own, s.Slots())
	}
}

// TestWaiting: a slot that becomes free goes to the party with the fewest, and then to the one whose last turn is longest
// ago; a party alone goes on as soon as its share allows.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(4, 4, 10)
		releases := map[string][]func(){"greedy": fill(t, s, "greedy"), "other": fill(t, s, "other"), "third": fill(t, s, "third")}
		if all, _ := s.Taken(""); all != 4 {
			t.Fatalf("%d slots are taken", all)
		}
		var mu sync.Mutex
		var order []string
		var got []func()
		var tasks sync.WaitGroup
		for _, of := range []string{"greedy", "greedy", "other", "late", "later"} {
			tasks.Go(func() {
				release, err := s.Wait(t.Context(), of)
				if err != nil {
					t.Errorf("%s: %v", of, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				order, got = append(order, of), append(got, release)
			})
			synctest.Wait()
		}
		next := func(want string, release func()) {
			t.Helper()
			release()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(order) == 0 || order[len(order)-1] != want {
				t.Errorf("got %q, want %s as the last", order, want)
			}
		}
		next("late", releases["greedy"][0])
		next("later", releases["greedy"][1]) // "greedy" has none now, too, and its own came first, but it has had its turn
		next("greedy", releases["third"][0])
		next("other", releases["other"][0])
		next("other", got[0]) // one is free, and "greedy" has one: nobody gets it
		next("greedy", got[1])
		tasks.Wait()
		for _, release := range got {
			release()
		}
		if all, _ := s.Taken(""); all != 0 || len(s.parties) != 0 {
			t.Errorf("%d slots are taken at the end, %d parties are remembered", all, len(s.parties))
		}
	})
}

// TestEndOfWaiting: one that waits no longer leaves nothing behind, and too many of a party do not wait.
func TestEndOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(1, 1, 2)
		release, err := s.Take("a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var tasks sync.WaitGroup
		for range 2 {
			tasks.Go(func() {
				if _, err := s.Wait(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if _, err := s.Wait(ctx, "b"); !errors.Is(err, ErrQueue) {
			t.Errorf("a third one: %v", err)
		}
		tasks.Wait()
		release()
		if all, _ := s.Taken("b"); all != 0 || len(s.parties) != 0 {
			t.Errorf("%d slots are taken, %d parties are remembered", all, len(s.parties))
		}
		// One that is granted as its time is up gives it back.
		release, _ = s.Take("a")
		ctx, cancel = context.WithCancel(t.Context())
		tasks.Go(func() {
			if release, err := s.Wait(ctx, "b"); err == nil {
				release()
			}
		})
		synctest.Wait()
		release()
		cancel()
		tasks.Wait()
		if all, _ := s.Taken("b"); all != 0 || len(s.parties) != 0 {
			t.Errorf("%d slots are taken, %d parties are remembered", all, len(s.parties))
		}
	})
}

// TestNobodyIsLeft: whatever comes, at most all slots are taken, and at the end all that waited got one.
func TestNobodyIsLeft(t *testing.T) {
	s := New(5, 3, 1000)
	var mu sync.Mutex
	running := 0
	var tasks sync.WaitGroup
	for i := range 500 {
		tasks.Go(func() {
			release, err := s.Wait(context.Background(), fmt.Sprint("p", rand.N(i%7+1)))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			if running++; running > 5 {
				t.Errorf("%d run at once", running)
			}
			mu.Unlock()
			mu.Lock()
			running--
			mu.Unlock()
			release()
		})
	}
	tasks.Wait()
	if all, _ := s.Taken(""); all != 0 || len(s.parties) != 0 {
		t.Errorf("%d slots are taken at the end, %d parties are remembered", all, len(s.parties))
	}
}
