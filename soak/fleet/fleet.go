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
	"strings"
)

// part is what the process that plays the nodes is told at its start.
type part struct {
	// Gateway is HOST:PORT, of several replicas with commas between them; CAFile is its CA. Tokens is a directory with a file for each node.
	Gateway, CAFile, Tokens string
	// First is the number of the first node.
	First, Nodes, Volumes int
	// Files is a directory; see writeFiles.
	Files string
	// Namespaces are the names and UIDs of the volumes' namespaces.
	Namespaces map[string]string
	Verbose    bool
}

// order changes what the nodes do.
type order struct {
	// Silent is how many nodes, from the first one on, do not answer.
	Silent int
	// Searches: the answer is how many searches run on all nodes.
	Searches bool
}

// mostOfAPlayer is how many connections one process may have: there is a limit of open files.
const mostOfAPlayer = 16_000

// parts are what each process plays. A node may have a connection to each replica for a moment.
func (p part) parts() (all []part) {
	each := max(1, mostOfAPlayer/(1+strings.Count(p.Gateway, ",")))
	for first := 0; first < p.Nodes; first += each {
		some := p
		some.First, some.Nodes = first, min(each, p.Nodes-first)
		all = append(all, some)
	}
	return all
}

// fleet are the processes that play the nodes.
type fleet []*player

// tell gives an order, and waits until it is carried out.
func (f fleet) tell(o order) error {
	for _, p := range f {
		if err := p.tell(o); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the processes.
func (f fleet) stop() (err error) {
	for _, p := range f {
		err = errors.Join(err, p.stop())
	}
	return err
}

// player is one process.
type player struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// startPlayer starts a process. Its nodes connect at once.
func startPlayer(p part) (*player, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &player{process: exec.Command(self, partPlay)}
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

func (f *player) tell(o order) error {
	if err := json.NewEncoder(f.in).Encode(o); err != nil {
		return err
	}
	if !f.out.Scan() {
		return fmt.Errorf("the process that plays the nodes has ended: %w", errors.Join(f.out.Err(), io.ErrUnexpectedEOF))
	}
	return nil
}

func (f *player) stop() error {
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
