package server

import (
	"context"
	"errors"
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
	of, who := shares.Reader(user)
	release, err := l.Take(of)
	if err != nil {
		return nil, l.refuse(of, who)
	}
	return release, nil
}

// wait is take for requests that end soon: it waits for the turn of the user. The user with the fewest comes first, so no user
// keeps others out by asking again and again.
func (l *limiter) wait(ctx context.Context, user string) (release func(), err error) {
	of, who := shares.Reader(user)
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
