package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// katbox runs a command of the real binary against the daemon, and returns what
// it prints.
func (n *node) katbox(ctx context.Context, args ...string) (string, error) {
	ctx, end := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("it did not end within %s", stepLimit))
	defer end()
	cmd := exec.CommandContext(ctx, n.binary, args...)
	cmd.Dir = n.layout.Dir
	cmd.Env = append(os.Environ(), "KATBOX_ADMIN_SOCKET="+n.layout.Admin)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", fmt.Errorf("katbox %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out) + stderr.String(), nil
}

// show runs a command and prints both it and what it prints.
func (s *story) show(ctx context.Context, args ...string) error {
	s.command(append([]string{"katbox"}, args...)...)
	out, err := s.katbox(ctx, args...)
	s.print(out)
	return err
}

// list is what `katbox ls` knows of the retained volumes.
func (n *node) list(ctx context.Context) ([]listed, error) {
	out, err := n.katbox(ctx, "ls", "-o", "json")
	if err != nil {
		return nil, err
	}
	var page struct {
		Items []listed `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &page); err != nil {
		return nil, fmt.Errorf("katbox ls -o json: %w", err)
	}
	return page.Items, nil
}

// listed is a retained volume of the list.
type listed struct {
	ID         string    `json:"id"`
	Namespace  string    `json:"namespace"`
	Pod        string    `json:"pod"`
	RetainedAt time.Time `json:"retainedAt"`
	// Bytes is nil until the daemon has measured the volume.
	Bytes *int64 `json:"bytes"`
}

// measured waits until the daemon knows what each retained volume takes.
func (n *node) measured(ctx context.Context) error {
	return poll(ctx, "the daemon has not measured the retained volumes", func() (bool, error) {
		volumes, err := n.list(ctx)
		for _, v := range volumes {
			if v.Bytes == nil {
				return false, err
			}
		}
		return true, err
	})
}
