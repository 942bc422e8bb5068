// Package browser opens a secret address in the user's browser.
//
// All users of a machine can read the arguments of all processes. So the browser is started with the
// name of a private file, and that leads on to the address. The programs that open a file as a click on
// it would are few, and need no library: xdg-open, open, and rundll32.
package browser

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// ErrNoDisplay says that a browser could not be seen here.
var ErrNoDisplay = errors.New("there is no display")

// Display reports whether a browser that is started here can be seen.
func Display() bool { return display(os.Getenv) }

// Open starts the browser, and does not wait until it shows the address. The address is in a file. The
// caller has to call remove, which is never nil, once the address was opened, or when it is good no more.
func Open(address string) (remove func(), err error) {
	if !Display() {
		return func() {}, ErrNoDisplay
	}
	words, err := opener()
	if err != nil {
		return func() {}, err
	}
	file, remove, err := leading(address)
	if err != nil {
		return func() {}, fmt.Errorf("make a file for the browser: %w", err)
	}
	command := exec.Command(words[0], append(words[1:], file)...)
	command.SysProcAttr = apart()
	if err := command.Start(); err != nil {
		remove()
		return func() {}, err
	}
	go func() { _ = command.Wait() }() // whether a browser shows the address is seen by its being opened
	return remove, nil
}

// leading makes a file that leads to an address. Only the user may read it.
func leading(address string) (name string, remove func(), err error) {
	dir, err := os.MkdirTemp(place(), "katbox-ui-")
	if err != nil {
		return "", nil, err
	}
	remove = sync.OnceFunc(func() { _ = os.RemoveAll(dir) }) // it is private, and its address is good once
	name, address = filepath.Join(dir, "katbox.html"), html.EscapeString(address)
	text := `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=` + address + `"><title>Katbox</title></head>
<body><p><a rel="noreferrer" href="` + address + `">Open the page</a></p></body></html>
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return name, remove, nil
}

// place returns the directory for the file. Browsers that are installed as snaps read no temporary files,
// and below the home directory only what is not hidden.
func place() string {
	if home, err := os.UserHomeDir(); err == nil {
		if info, err := os.Stat(filepath.Join(home, "snap")); err == nil && info.IsDir() {
			return home
		}
	}
	return os.TempDir()
}
