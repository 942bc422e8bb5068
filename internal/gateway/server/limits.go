package server

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/internal/gateway/resource"
	"github.com/katbox/katbox/internal/shares"
)

// limiter bounds how many requests of a kind run at once: all of them, and those of each reader.
type limiter struct {
	what string
	*shares.Shares
}

func newLimiter(what string, most, mostOfReader int) *limiter {
	return &limiter{what, shares.New(most, mostOfReader, 0)}
}

// take begins a request of a user, if one may begin. It runs until release is called.
func (l *limiter) take(user string) (release func(), refused *apierrors.StatusError) {
	of, who := reader(user)
	release, err := l.Take(of)
	switch _, own := l.Taken(of); {
	case errors.Is(err, shares.ErrFull):
		return nil, resource.TooMany("%d %s are running in this gateway, which is the most; try again in a moment", l.Slots(), l.what)
	case err != nil:
		return nil, resource.TooMany("%d %s of %s are running, which is the most at present; try again when one has ended", own, l.what, who)
	}
	return release, nil
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
