// Package optin says which volumes of which pods an administrator's label turns into Katbox volumes, and why others are left
// alone. One table has both the rule that the API server evaluates, in CEL, and the same rule in Go, with its reason: the
// policy is generated from the first, and kubectl katbox check says the second. A test holds them against one another.
//
// It knows pods only as far as the rules look at them, and does no I/O.
package optin
