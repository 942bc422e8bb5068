package arrays

import "github.com/katbox/katbox/actors"

// problemf makes an error of a kind.
func problemf(kind error, format string, about ...any) error {
	return actors.Problemf(kind, format, about...)
}

// because makes an error of a kind that has a cause.
func because(kind, cause error, format string, about ...any) error {
	return actors.Because(kind, cause, format, about...)
}
