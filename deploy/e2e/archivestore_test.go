//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	// storeAddress is on the first node, which all nodes and pods reach; deploy/e2e/overlay-archive has it too.
	storeAddress = "10.254.254.1:7443"
	storeBucket  = "evidence"
	storeUser    = "katbox"
	storeSecret  = "not-a-secret-of-anyone"
)

// store is a server that speaks S3. Its objects are files below dir.
type store struct {
	t       *testing.T
	dir, ca string
	path    string
	args    []string
	log     *os.File
	cmd     *exec.Cmd
}

// startStore starts the store, which ends with the whole test.
func (c *archiveCluster) startStore() {
	c.t.Helper()
	dir := filepath.Join(c.state, "store")
	for _, sub := range []string{filepath.Join("objects", storeBucket), "meta"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			c.t.Fatal(err)
		}
	}
	ca := filepath.Join(c.state, "etc/pki/ca")
	c.tools("cert", "--dir", dir, "--ca", ca, "--name", "store", "--cn", "store", "--san", "10.254.254.1")
	log, err := os.Create(filepath.Join(c.state, "logs", "store.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.store = &store{
		t: c.t, dir: filepath.Join(dir, "objects"), ca: ca + ".crt", path: c.binary("versitygw"), log: log,
		args: []string{"--port", storeAddress, "--access", storeUser, "--secret", storeSecret, "--cert", filepath.Join(dir, "store.crt"),
			"--key", filepath.Join(dir, "store.key"), "posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "objects")},
	}
	c.t.Cleanup(func() { c.store.stop(); log.Close() })
	c.store.start()
}

// start starts the server, with what it had.
func (s *store) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.path, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the store listens", func() error {
		conn, err := net.Dial("tcp", storeAddress)
		if err != nil {
			return err
		}
		defer conn.Close()
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake() // it may be anyone's: only that it answers is asked
	})
}

// stop ends the server, if it runs.
func (s *store) stop() {
	if s.cmd == nil {
		return
	}
	s.signal(syscall.SIGCONT)
	_, _ = s.cmd.Process.Kill(), s.cmd.Wait()
	s.cmd = nil
}

func (s *store) signal(signal syscall.Signal) {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(signal)
	}
}

// objects returns how many objects of the bucket have a part in their key.
func (s *store) objects(part string) (n int) {
	s.t.Helper()
	root := filepath.Join(s.dir, storeBucket)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(strings.TrimPrefix(path, root), part) {
			n++
		}
		return err
	})
	if err != nil {
		s.t.Fatal(fmt.Errorf("read the bucket: %w", err))
	}
	return n
}
