// Package misuse makes calls with bad input: what a broken or hostile caller
// could send, each with one thing wrong. It promises that each of them has to
// be refused by a driver that keeps CSI and the design's ninth promise (one
// clear error that names the field, and nothing reaches a path or a mount), says
// what is wrong with an answer, and looks for what a call may have left.
//
// What the design leaves to the driver is not in the list: volume IDs of any
// plain path element, a file system type.
package misuse
