package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// containerName is that of the only container of each pod.
const containerName = "main"

// containerLog writes what a container prints, as the runtime does for a kubelet: into a file of the directory of its pod,
// once it prints.
type containerLog struct {
	dir   string
	began time.Time
	file  *os.File
	// line is the beginning of a line that is not printed yet.
	line []byte
}

// Write takes what the container prints. The file is closed with this program: a pod prints a few lines.
func (l *containerLog) Write(printed []byte) (int, error) {
	if l.file == nil {
		dir := filepath.Join(l.dir, containerName)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
		file, err := os.Create(filepath.Join(dir, "0.log"))
		if err != nil {
			return 0, err
		}
		l.file = file
	}
	l.line = append(l.line, printed...)
	for {
		line, rest, found := bytes.Cut(l.line, []byte("\n"))
		if !found {
			return len(printed), nil
		}
		if _, err := fmt.Fprintf(l.file, "%s stderr F %s\n", time.Now().UTC().Format(time.RFC3339Nano), line); err != nil {
			return 0, err
		}
		l.line = rest
	}
}
