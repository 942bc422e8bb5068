// Package verbs is what people type: katbox ls, stat, cat, tail, cp, rm, top and report. A verb is a
// process beside the daemon, in its container or on its node. It asks the daemon over the admin
// socket and reads no volume itself.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 4 no such volume or it expired, 130 interrupted, 141
// the reader of the output went away.
//
// A pod chooses names and contents. On a terminal they are shown with internal/terminal; names are
// quoted everywhere. The memory of a verb counts in the daemon's container, so that no verb holds a
// whole list or a whole file.
package verbs
