// Command licenses writes what the licenses of others ask of those who hand out a program: their texts. It
// reads from the program which modules are linked into it, and takes from each every license, notice and
// grant of patents that is beside a linked package or above it.
//
//	licenses --license FILE --output DIR PROGRAM
//
// It is run in the directory of the module that PROGRAM was built from. DIR gets LICENSE, which is FILE, and
// THIRD-PARTY-LICENSES.txt. The same program makes the same files.
//
// It fails if a module has no license, if a license is of a kind that nobody has looked at, and if
// the checkout would link other modules than the program has.
package main
