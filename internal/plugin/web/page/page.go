// Package page holds the files of the page that shows retained volumes in a browser. They are plain
// HTML, CSS and ES modules: nothing builds them, and they need no other host.
//
// The server of the page serves them below "/", with a Content-Security-Policy that allows scripts
// and styles of the page's own origin only. It has to allow images of its own origin, for the icon,
// and of the origin of raw bytes. The page then asks the server for /session, /tickets and the
// resources of katbox.io.
//
// # Reading the source
//
// Begin with main.js, which shows the view that the address names (route.js). volumes.js has the lists of
// the retained volumes and of those that are gone (listview.js is what they share, volumestore.js what is
// loaded, facts.js what is said of a volume), volume.js is one volume, decide.js what a person decides about
// it, ending.js how its pod ended, directory.js and file.js what is in it. namespaces.js is the chooser of namespaces, command.js has
// the plugin's commands for what is shown. api.js alone talks to the server, problem.js says what an
// error means. grid.js and rows.js draw the rows of long lists that
// can be seen, textview.js, hex.js and image.js the contents of files (text.js has the bytes of a text and its
// lines, encoding.js tells what it is in, crilog.js what a container printed, ansi.js has what terminals make of it).
//
// File names and contents were chosen by pods. They reach the page as text nodes only (dom.js), with
// the characters made visible that hide or reorder others (names.js, ansi.js).
package page

import (
	"embed"
	"path"
	"regexp"
)

// Files are the files of the page: index.html and what it loads.
//
//go:embed index.html icon.svg *.css *.js
var Files embed.FS

// comments are the lines of scripts that are for readers of the source alone. Their ends stay, so that what a
// browser says about a line is true of the file.
var comments = regexp.MustCompile(`(?m)^[ \t]*//.*$`)

// Sent returns a file as it is sent to browsers.
func Sent(name string) ([]byte, error) {
	text, err := Files.ReadFile(name)
	if path.Ext(name) == ".js" {
		text = comments.ReplaceAll(text, nil)
	}
	return text, err
}
