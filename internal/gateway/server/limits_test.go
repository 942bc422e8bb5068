package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestLimiter(t *testing.T) {
	l := newLimiter("lists", 3, 2)
	take := func(user string, want bool) (release func()) {
		t.Helper()
		release, refused := l.take(user)
		if (refused == nil) != want || refused != nil && refused.ErrStatus.Code != http.StatusTooManyRequests {
			t.Errorf("a list of %s: %v, want %v", user, refused, want)
		}
		return release
	}
	a, _ := take("a", true), take("a", true)
	take("a", false) // the most of a user
	take("b", true)
	take("c", false) // the most of all
	a()
	a() // counts once
	take("c", true)
	take("a", false)
	for i := range 1000 { // what is over leaves nothing behind
		l := newLimiter("lists", 1, 1)
		release, refused := l.take(fmt.Sprint(i))
		if refused != nil {
			t.Fatal(refused)
		}
		release()
		if running, _ := l.Taken(fmt.Sprint(i)); running != 0 {
			t.Fatalf("after the end: %d running", running)
		}
	}
}

// TestServiceAccountsOfATenant: who has a namespace makes as many ServiceAccounts as he likes. They are one reader,
// so others are answered still; and however many namespaces he has, the next reader is answered.
func TestServiceAccountsOfATenant(t *testing.T) {
	l := newLimiter("streams", 64, 8)
	began := 0
	for i := range 100 {
		if _, refused := l.take(fmt.Sprintf("system:serviceaccount:mine:sa-%d", i)); refused == nil {
			began++
		} else if text := refused.ErrStatus.Message; !strings.Contains(text, `8 streams of the ServiceAccounts of namespace "mine"`) {
			t.Fatal(text)
		}
	}
	if began != 8 {
		t.Errorf("%d streams of one namespace run", began)
	}
	// Users that are called alike are others.
	for _, user := range []string{
		"jane", "mine", "system:serviceaccount:other:sa-1", "system:serviceaccount:mine", "x:system:serviceaccount:mine:a",
	} {
		if _, refused := l.take(user); refused != nil {
			t.Errorf("%s: %v", user, refused)
		}
	}
	if _, own := l.Taken("system:serviceaccount:mine:"); own != 8 {
		t.Errorf("%d streams of the namespace are counted", own)
	}
	l = newLimiter("lists", 16, 8)
	for i := range 4 {
		for refused := (*apierrors.StatusError)(nil); refused == nil; {
			_, refused = l.take(fmt.Sprintf("system:serviceaccount:mine-%d:sa", i))
		}
	}
	if _, refused := l.take("jane"); refused != nil {
		t.Errorf("behind a tenant with four namespaces: %v", refused)
	}
}

// TestListsWaitForTheirTurn: a tenant with twenty namespaces has all lists, and asks for the next one as soon as one has
// ended. Another reader has his turn all the same.
func TestListsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter("lists", 16, 8)
		ctx, cancel := context.WithCancel(t.Context())
		var tenant sync.WaitGroup
		defer tenant.Wait()
		defer cancel()
		for i := range 20 {
			for range mostWaiting {
				tenant.Go(func() {
					for ctx.Err() == nil {
						if release, err := l.wait(ctx, fmt.Sprintf("system:serviceaccount:mine-%d:sa", i)); err == nil {
							time.Sleep(answerLimit / 2)
							release()
						}
					}
				})
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if all, _ := l.Taken(""); all != 16 {
			t.Fatalf("%d lists run", all)
		}
		for range 10 {
			began := time.Now()
			release, err := l.wait(t.Context(), "jane")
			if err != nil || time.Since(began) > answerLimit {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			release()
		}
	})
}

// TestWaitEnds: for whoever waits too long, waits with too many others, or has left.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter("lists", 1, 1)
		release, _ := l.take("a")
		refused := func(err error, because string) {
			t.Helper()
			if status := apierrors.APIStatus(nil); !errors.As(err, &status) || status.Status().Code != http.StatusTooManyRequests ||
				!strings.Contains(err.Error(), because) {
				t.Errorf("%s: %v", because, err)
			}
		}
		began := time.Now()
		_, err := l.wait(t.Context(), "b")
		refused(err, "1 lists are running in this gateway")
		if waited := time.Since(began); waited != waitLimit {
			t.Errorf("it waited %s", waited)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.wait(short, "b")
		refused(err, "1 lists are running in this gateway")
		left, leave := context.WithCancel(t.Context())
		for range mostWaiting {
			go func() {
				if _, err := l.wait(left, "b"); !errors.Is(err, context.Canceled) {
					t.Errorf("after the reader has left: %v", err)
				}
			}()
		}
		synctest.Wait()
		_, err = l.wait(t.Context(), "b")
		refused(err, `8 lists of user "b" wait for their turn`)
		leave()
		synctest.Wait()
		release()
		if release, err = l.wait(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		release()
	})
}
