package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// token is what arrays are asked with.
const token = "token"

// arrays are the fake arrays.
type arrays struct {
	process *exec.Cmd
	urls    []string
}

func startArrays(ctx context.Context, o options) (*arrays, error) {
	a := &arrays{process: exec.Command(o.fakearray, "--arrays", strconv.Itoa(o.arrays), "--token", token,
		"--latency", o.latency.String(), "--no-recycle-bin")}
	a.process.Stderr = os.Stderr
	out, err := a.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := a.process.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); len(a.urls) < o.arrays && lines.Scan(); {
		a.urls = append(a.urls, lines.Text())
	}
	if len(a.urls) < o.arrays {
		a.stop()
		return nil, fmt.Errorf("%s ended before its arrays listened", o.fakearray)
	}
	for n, url := range a.urls {
		body := fmt.Sprintf(`{"prefix":%q,"count":%d,"size":1}`, volumePrefix(n), o.volumes)
		if err := request(ctx, http.MethodPost, url+"/fake/seed", body, nil); err != nil {
			a.stop()
			return nil, err
		}
	}
	return a, nil
}

func (a *arrays) stop() {
	_ = a.process.Process.Signal(unix.SIGTERM)
	_ = a.process.Wait()
}

// count returns how many objects of a kind all arrays have.
func (a *arrays) count(ctx context.Context, kind string) (all int, err error) {
	for _, url := range a.urls {
		var answer struct{ Response struct{ Count int } }
		if err := request(ctx, http.MethodGet, url+"/api/"+kind+".json?start=0&limit=1", "", &answer); err != nil {
			return 0, err
		}
		all += answer.Response.Count
	}
	return all, nil
}

// asked returns how many requests all arrays got since it was last called.
func (a *arrays) asked(ctx context.Context) (all int, err error) {
	for _, url := range a.urls {
		var counts map[string]int
		if err := request(ctx, http.MethodGet, url+"/fake/counts", "", &counts); err != nil {
			return 0, err
		}
		for _, n := range counts {
			all += n
		}
		if err := request(ctx, http.MethodDelete, url+"/fake/counts", "", nil); err != nil {
			return 0, err
		}
	}
	return all, nil
}
