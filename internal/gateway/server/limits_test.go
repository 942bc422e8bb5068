package server

import (
	"fmt"
	"net/http"
	"testing"
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
		if len(l.users) > 0 || l.running != 0 {
			t.Fatalf("after the end: %d running, %v", l.running, l.users)
		}
	}
}
