// Package grep finds the lines that match a pattern in text that comes from anywhere.
//
// A pod wrote the text, and a reader the pattern, so both may be hostile. A search holds no more than 64 KiB of a line, and a
// longer one is searched in pieces. A file with a NUL byte is no text, and not searched behind it: so a hole ends it, however
// large the file is. What containers printed is searched as they printed it, without what the runtime adds, also where the
// kubelet has compressed it. The number of steps that a pattern may take between two looks at the end of the context, and
// between two calls of the pace, is bounded.
package grep
