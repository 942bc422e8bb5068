// Package array has the words for a remote storage array, and what Katbox asks of one: [Array].
// Package internal/controller/vpsa is the client of a Zadara VPSA, internal/testing/array/fakevpsa the array that tests run
// against.
//
// An array has no idempotency keys, and an answer can get lost after the change was made. So each
// method that changes something looks first: it may be repeated after any error, and makes nothing
// twice. Sizes are bytes; an array counts in a unit, and rounds up to it what it is asked for.
// An error that leaves open whether the change was made, or will be, is [ErrUncertain].
package array
