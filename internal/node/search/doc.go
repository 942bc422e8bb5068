// Package search finds the lines that match a pattern in the files of retained volumes, which are read through a [files.Reading].
//
// What is found in a text, and what bounds that, is in internal/lib/grep. Nothing is written, and reading leaves no trace (see
// internal/node/files).
package search
