// Package offheap keeps many small values where the garbage collector does not see
// them.
//
// The collector lets the heap grow to twice of what lives in it before it runs, and
// most of that would be records that sleep for hours. What is kept here counts once,
// and is never looked through.
package offheap
