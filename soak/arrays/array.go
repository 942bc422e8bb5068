package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// array is the fake array, in a process of its own.
type array struct {
	process *exec.Cmd
	dir     string
	url     string
	// front is between the controller and the array, nil for nothing.
	front *httptest.Server
}

func startArray(o options) (*array, error) {
	a := &array{dir: filepath.Join(o.dir, "array")}
	portals := fmt.Sprintf("10.254.%d.1,10.254.%d.2", o.serial, o.serial)
	a.process = exec.Command(o.fakearray, "--data-plane", "kernel", "--data-dir", a.dir, "--portal", portals,
		"--source-address", o.nodeAddress, "--no-recycle-bin", "--token", token, "--serial", strconv.Itoa(o.serial))
	a.process.Stderr = os.Stderr
	a.process.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := a.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(a.dir, 0o700), a.process.Start()); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		a.stop()
		return nil, fmt.Errorf("%s ended before it listened", o.fakearray)
	}
	a.url = lines.Text()
	to, err := url.Parse(a.url)
	if err == nil && o.between != nil {
		pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		a.front = httptest.NewServer(o.between(pass))
	}
	return a, err
}

func (a *array) stop() {
	if a.front != nil {
		a.front.CloseClientConnections()
		a.front.Close()
	}
	_ = a.process.Process.Signal(unix.SIGTERM)
	_ = a.process.Wait()
}

// endpoint is where the controller finds it.
func (a *array) endpoint() string {
	if a.front != nil {
		return a.front.URL
	}
	return a.url
}

// order asks for something that an array's people, or a fault, do to it.
func (a *array) order(ctx context.Context, method, path, body string) error {
	return request(ctx, method, a.url+"/fake/"+path, body, nil)
}

// onArray is what the array has.
type onArray struct {
	Volumes []struct {
		ID, Name    string
		Size        int64
		Attachments []struct{ Server string }
	}
	Servers   []struct{ ID, Name string }
	Snapshots []struct{ ID, Name string }
}

func (a *array) state(ctx context.Context) (s onArray, err error) {
	return s, request(ctx, http.MethodGet, a.url+"/fake/state", "", &s)
}

// change is one that the array made for a request.
type change struct {
	Call, Object string
	Params       map[string][]string
}

func (a *array) changes(ctx context.Context) (all []change, err error) {
	return all, request(ctx, http.MethodGet, a.url+"/fake/changes", "", &all)
}
