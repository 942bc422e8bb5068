// Package terminal writes for people: tables, sizes, ages, a line of progress, and names that others
// chose. It knows nothing of volumes or nodes, so that every program can use it.
//
// A file name or the content of a file may hold sequences that drive a terminal: they hide text,
// change the title, or answer on behalf of the user. Quote, Clean and Escaper show such characters
// instead; an Escaper lets colors through. What a pod chose reaches a terminal through one of them only.
package terminal
