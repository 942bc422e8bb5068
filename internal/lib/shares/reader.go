package shares

import (
	"fmt"
	"strings"
)

// Reader returns the party that the requests of a user count for, and how people call that. It is the user, but the
// ServiceAccounts of a namespace are one reader: who has the namespace makes as many as he likes.
func Reader(user string) (of, who string) {
	const prefix = "system:serviceaccount:"
	if namespace, _, ok := strings.Cut(strings.TrimPrefix(user, prefix), ":"); ok && strings.HasPrefix(user, prefix) {
		return prefix + namespace + ":", fmt.Sprintf("the ServiceAccounts of namespace %q", namespace)
	}
	return user, fmt.Sprintf("user %q", user)
}
