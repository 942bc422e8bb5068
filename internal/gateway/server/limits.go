package server

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/gateway/resource"
)

// limiter bounds how many requests of a kind run at once: all of them, and those of each user.
type limiter struct {
	what             string
	most, mostOfUser int

	mu      sync.Mutex
	running int
	// users counts those of each user that has any.
	users map[string]int
}

func newLimiter(what string, most, mostOfUser int) *limiter {
	return &limiter{what: what, most: most, mostOfUser: mostOfUser, users: map[string]int{}}
}

// take begins a request of a user, if one may begin. It runs until release is called.
func (l *limiter) take(user string) (release func(), refused *apierrors.StatusError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.users[user] >= l.mostOfUser:
		return nil, resource.TooMany("%d %s of user %q are running, which is the most for one user; try again when one has ended",
			l.mostOfUser, l.what, user)
	case l.running >= l.most:
		return nil, resource.TooMany("%d %s are running in this gateway, which is the most; try again in a moment", l.most, l.what)
	}
	l.running++
	l.users[user]++
	return sync.OnceFunc(func() { l.release(user) }), nil
}

func (l *limiter) release(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if l.users[user]--; l.users[user] == 0 {
		delete(l.users, user)
	}
}
