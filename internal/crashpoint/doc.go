// Package crashpoint names the places where a crash must do no harm: right
// before and right after everything that changes a file system, the mounts or
// the records.
//
// Every such effect goes through [Around], which does nothing but call it. In a
// program that was built with the tag crashpoints it also looks whether the
// process is to end there, by SIGKILL to itself, as nothing else is as sudden. A
// test runs such a daemon, has it end at each point in turn, starts it again and
// checks every promise.
//
// That no effect goes another way is checked, too: package points lists the
// points by reading the source, and finds calls that change something outside of
// one.
package crashpoint
