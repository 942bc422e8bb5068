//go:build !windows

package terminal

// takesEscapes reports whether a terminal takes the escape sequences of [Progress].
func takesEscapes(any) bool { return true }
