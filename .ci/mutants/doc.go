// Command mutants changes the code in many small ways, one at a time, and runs the tests against each change:
//
//	mutants [FLAGS] PACKAGE...
//
// A condition is always true or always false, one term of it is left out, a comparison includes its bound or not, a
// statement is dropped, an error is returned as nil, a number is one more or ten times as much, a flag of a system call
// is left out. It prints each change with what became of it: "caught", with the test; "late", the tests did not end in
// time; "passed", no test noticed; "unfinished", none did of those that the budget allowed; "unreached", no test comes
// there.
//
// It compiles each package once with all its mutants, and runs the tests that reach a mutant, the fast ones first. The
// tree is not changed. It needs root: the tests run in a mount and a process namespace of their own, where only a small
// disk in memory can be written. KATBOX_MUTANTS_DEVICES=yes gives them the machine's devices, for the tests on file
// systems of their own.
package main
