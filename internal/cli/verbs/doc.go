// Package verbs is what the command lines of Katbox share: katbox on a node and kubectl katbox on a
// user's machine. It knows how a program with verbs parses its arguments and ends, and how files of
// retained volumes are listed, shown and copied. It does not know how a volume is named or found, nor
// where its files come from: the program brings a [Volume] with a [Reader].
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 3 incomplete where the user wants no such answer, 4 no
// such volume or it expired, 130 interrupted, 141 the reader of the output went away.
//
// A pod chooses names and contents. On a terminal they are shown with internal/model/terminal; names are
// quoted everywhere. On a node the memory of a verb counts in the daemon's container, so that no verb
// holds a whole list or a whole file.
package verbs
