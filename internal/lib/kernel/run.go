package kernel

import "os/exec"

// Run runs a program to its end. Unlike the other changes, what the program does can be cut in two. It is not
// repeated.
func Run(command *exec.Cmd) (err error) {
	if injected := do("Run", at(command.Path), func() error { err = command.Run(); return nil }); injected != nil {
		return injected
	}
	return err
}
