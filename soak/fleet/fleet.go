package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// part is what the process that plays the nodes is told at its start.
type part struct {
	// Gateway is HOST:PORT, CAFile its CA. Tokens is a directory with a file for each node.
	Gateway, CAFile, Tokens string
	Nodes, Volumes          int
	// Namespaces are the names and UIDs of the volumes' namespaces.
	Namespaces map[string]string
	Verbose    bool
}

// order changes what the nodes do.
type order struct {
	// Silent is how many nodes, from the first one on, do not answer.
	Silent int
}

// fleet is the process that plays the nodes.
type fleet struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// startFleet starts it. The nodes connect at once.
func startFleet(p part) (*fleet, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &fleet{process: exec.Command(self, partPlay)}
	f.process.Stderr = os.Stderr
	in, err := f.process.StdinPipe()
	out, err2 := f.process.StdoutPipe()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	f.in, f.out = in, bufio.NewScanner(out)
	if err := f.process.Start(); err != nil {
		return nil, err
	}
	return f, json.NewEncoder(f.in).Encode(p)
}

// tell gives an order, and waits until it is carried out.
func (f *fleet) tell(o order) error {
	if err := json.NewEncoder(f.in).Encode(o); err != nil {
		return err
	}
	if !f.out.Scan() {
		return fmt.Errorf("the process that plays the nodes has ended: %w", errors.Join(f.out.Err(), io.ErrUnexpectedEOF))
	}
	return nil
}

// stop ends the process.
func (f *fleet) stop() error {
	f.in.Close()
	return f.process.Wait()
}

// writeTokens writes a file for each node.
func writeTokens(dir string, tokens []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for i, token := range tokens {
		if err := os.WriteFile(filepath.Join(dir, nodeName(i)), []byte(token), 0o600); err != nil {
			return err
		}
	}
	return nil
}
