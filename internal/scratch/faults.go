package scratch

import (
	"errors"
	"fmt"
)

// mostFaults bounds how many errors of one operation are told apart: a tree of
// a million files that cannot be removed has one story to tell.
const mostFaults = 8

// faults collects the errors of an operation that goes on in spite of them.
type faults struct {
	first []error
	count int
	mount bool
}

// add keeps err if it is among the first, or the first of a mount inside, which
// callers ask for.
func (f *faults) add(err error) {
	f.count++
	firstMount := !f.mount && errors.Is(err, ErrMountInside)
	if len(f.first) < mostFaults || firstMount {
		f.first = append(f.first, err)
	}
	f.mount = f.mount || firstMount
}

// err returns all that was added as one error, or nil.
func (f *faults) err() error {
	err := errors.Join(f.first...)
	if more := f.count - len(f.first); more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, more)
	}
	return err
}
