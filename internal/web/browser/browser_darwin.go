package browser

// opener is the command that opens a file.
var opener = []string{"/usr/bin/open"}

// display reports whether the user sits in front of the machine.
func display(env func(string) string) bool { return env("SSH_CONNECTION") == "" }
