// Package verbs is what people type on a node: katbox ls, stat, cat, tail, cp, pin, unpin, release,
// rm, top and report. A verb is a process beside the daemon, in its container or on its node. It asks the daemon over the
// admin socket and reads no volume itself. What it shares with kubectl katbox is in internal/cli/verbs,
// which also says what the exit codes are.
package verbs
