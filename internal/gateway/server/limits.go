package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/lib/shares"
	"github.com/katbox/katbox/internal/model/resource"
)

// limiter bounds how many requests of a kind run at once: all of them, and those of each reader.
type limiter struct {
	what string
	*shares.Shares
	// patience is how long a request waits for its turn.
	patience time.Duration
}

func newLimiter(what string, most, mostOfReader int) *limiter {
	return &limiter{what, shares.New(most, mostOfReader, mostWaiting), waitLimit}
}

// take begins a request of a user, if one may begin. It runs until release is called.
func (l *limiter) take(user string) (release func(), refused *apierrors.StatusError) {
	of, who := reader(user)
	release, err := l.Take(of)
	if err != nil {
		return nil, l.refuse(of, who)
	}
	return release, nil
}

// wait is take for requests that end soon: it waits for the turn of the user. The user with the fewest comes first, so no user
// keeps others out by asking again and again.
func (l *limiter) wait(ctx context.Context, user string) (release func(), err error) {
	of, who := reader(user)
	waiting, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	release, err = l.Wait(waiting, of)
	switch {
	case err == nil:
		return release, nil
	case errors.Is(err, shares.ErrQueue):
		return nil, resource.TooMany("%d %s of %s wait for their turn, which is the most; try again in a moment", mostWaiting, l.what, who)
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, err // the client has left
	}
	return nil, l.refuse(of, who)
}

// refuse says why no request of a reader may begin.
func (l *limiter) refuse(of, who string) *apierrors.StatusError {
	all, own := l.Taken(of)
	if all >= l.Slots() {
		return resource.TooMany("%d %s are running in this gateway, which is the most; try again in a moment", all, l.what)
	}
	return resource.TooMany("%d %s of %s are running, which is the most at present; try again when one has ended", own, l.what, who)
}

// reader returns whom the requests of a user count for, and how people call that. It is the user, but the
// ServiceAccounts of a namespace are one reader: who has the namespace makes as many as he likes.
func reader(user string) (of, who string) {
	const prefix = "system:serviceaccount:"
	if namespace, _, ok := strings.Cut(strings.TrimPrefix(user, prefix), ":"); ok && strings.HasPrefix(user, prefix) {
		return prefix + namespace + ":", fmt.Sprintf("the ServiceAccounts of namespace %q", namespace)
	}
	return user, fmt.Sprintf("user %q", user)
}
