package clock

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is what package time gets besides.
//
//go:embed steps.go.txt
var source []byte

// Overlay writes into a directory, which it makes, what "go build" needs to build a program that
// follows a [Clock], and returns the file for the flag -overlay. It needs the go command.
func Overlay(dir string) (path string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("overlay for a clock: %w", err)
		}
	}()
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	timePackage := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original := filepath.Join(timePackage, "time.go")
	now, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if now, err = step(now); err != nil {
		return "", fmt.Errorf("%s: %w", original, err)
	}
	replaced, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "steps.go")
	list, err := json.Marshal(map[string]map[string]string{
		"Replace": {original: replaced, filepath.Join(timePackage, "katbox_steps.go"): added},
	})
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, errors.Join(
		os.WriteFile(replaced, now, 0o644), os.WriteFile(added, source, 0o644), os.WriteFile(path, list, 0o644))
}

// step makes time.Now ask steppedNow, in the source of package time.
func step(source []byte) ([]byte, error) {
	const asks, stepped = "sec, nsec, mono := runtimeNow()\n", "sec, nsec, mono := steppedNow()\n"
	if n := bytes.Count(source, []byte(asks)); n != 1 {
		return nil, fmt.Errorf("it asks for the time in %d places instead of 1: this version of Go is not known here", n)
	}
	return bytes.Replace(source, []byte(asks), []byte(stepped), 1), nil
}
