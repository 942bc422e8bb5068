// Overlay writes into the directory that it is given what "go build" needs for a daemon that follows
// the soak's clock, and prints the file for the flag -overlay.
package main

import (
	"fmt"
	"os"

	"github.com/katbox/katbox/soak/internal/clock"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: overlay DIRECTORY")
		os.Exit(2)
	}
	path, err := clock.Overlay(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}
