package main

// runtime is what each package under mutation gets as a file of its own. The number of
// the active mutant is in the environment; KATBOX_MUTANTS_REACHED names a file with a
// byte for each mutant, which is set when a test reaches it, whatever ends the process.
const runtime = `package %s

import (
	"os"
	"strconv"
	"syscall"
)

var mutantActive, mutantsReached = func() (int, []byte) {
	active, err := strconv.Atoi(os.Getenv("KATBOX_MUTANT"))
	if err != nil {
		active = -1
	}
	name := os.Getenv("KATBOX_MUTANTS_REACHED")
	if name == "" {
		return active, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	reached, err := syscall.Mmap(int(f.Fd()), 0, %d, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return active, reached
}()

func mutant(n int) bool {
	if mutantsReached != nil {
		mutantsReached[n] = 1
	}
	return n == mutantActive
}

func mutantPick[T any](n int, as, instead T) T {
	if mutant(n) {
		return instead
	}
	return as
}

func mutantZero[T any](n int, v T) T {
	if mutant(n) {
		var zero T
		return zero
	}
	return v
}

func mutantNil(n int, err error) error {
	if mutant(n) {
		return nil
	}
	return err
}
`
