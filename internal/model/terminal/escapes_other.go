//go:build !windows

package terminal

import "os"

// takesEscapes reports whether a terminal takes escape sequences. One that is called dumb, or has no name,
// prints them.
func takesEscapes(any) bool {
	name := os.Getenv("TERM")
	return name != "" && name != "dumb"
}
