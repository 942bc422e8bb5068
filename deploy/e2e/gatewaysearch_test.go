//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// endless is a pattern that takes long for each byte of a text, and is in none.
const endless = "(?:[a-z]{1,9} ?){40}[A-Z]{9}"

// pluginSearch: who may read files finds lines in all of them, and who may not finds none.
func (c *gatewayCluster) pluginSearch(volumes []rv) {
	p := c.as(bob)
	const line = "the input ends in the middle"
	found := p.does("grep", "-n", "ci", line, "job/nightly")
	for _, v := range volumes {
		p.wantIn(found, v.Metadata.Name+":log:")
	}
	p.wantIn(p.does("grep", "-n", "ci", "-g", line), "2 volumes since")
	p.wantIn(p.does("grep", "-n", "ci", "-l", line, volumes[0].Metadata.Name), volumes[0].Metadata.Name+":log")
	p.doesNot(1, []string{"nothing was found in"}, "grep", "-n", "ci", "there is no such line", "job/nightly")
	p.doesNot(2, []string{"regular expression"}, "grep", "-n", "ci", "(")
	for _, who := range []string{alice, carol} {
		c.as(who).doesNot(2, []string{"ci", who, "not read their files"}, "grep", "-n", "ci", line)
		c.as(who).doesNot(2, []string{"ci", who}, "grep", "-n", "ci", line, volumes[0].Metadata.Name)
	}
	c.as(erin).doesNot(2, []string{"ci", "retainedvolumes"}, "grep", "-n", "ci", line)
	c.as(erin).doesNot(2, []string{"retainedvolumes"}, "grep", "-A", line)
	if s := c.as(erin).katbox(c.t.TempDir(), "grep", "-n", "other", line); s.code == 0 || strings.Contains(s.stdout+s.stderr, "nightly") {
		c.t.Errorf("erin finds %d %s%s", s.code, s.stdout, s.stderr)
	}
}

// streams are how many streams to readers the daemons of all nodes have.
func (p person) streams() (streams int, err error) {
	for address := range strings.FieldsSeq(p.kubectl("-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=katbox",
		"-o", "jsonpath={.items[*].status.podIP}")) {
		text, err := p.try("", "curl", "--silent", "--max-time", "10", "http://"+address+":8080/metrics")
		if err != nil {
			return 0, err
		}
		_, after, found := strings.Cut(text, "\nkatbox_read_streams ")
		n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(after, "\n", 2)[0]))
		if !found || err != nil {
			return 0, fmt.Errorf("%s does not say how many it has: %w", address, err)
		}
		streams += n
	}
	return streams, nil
}

// wantStreams waits until there are so many.
func (p person) wantStreams(want int) {
	p.t.Helper()
	p.eventually("streams to readers", func() error {
		is, err := p.streams()
		if err == nil && is != want {
			err = fmt.Errorf("there are %d, want %d", is, want)
		}
		return err
	})
}

// pluginSearchEnds: Ctrl-C ends a search, on its node, too.
func (p person) pluginSearchEnds() {
	v := p.retained("ci", 1, pod{Name: "verbose", Scripts: []string{
		"yes 'a line of many words that says nothing at all' | head -c 300000000 >/scratch/log; exit 1",
	}})
	others, err := p.streams() // the suite has a long one all the while
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := p.command(p.t.TempDir(), "kubectl", "katbox", "grep", "-n", "ci", endless, v.Metadata.Name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.wantStreams(others + 1)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Error(err)
	}
	if exit := (*exec.ExitError)(nil); !errors.As(cmd.Wait(), &exit) {
		p.t.Errorf("a search that was ended succeeds: %s", &stderr)
	}
	p.wantStreams(others)
	p.does("rm", "--yes", "-n", "ci", v.Metadata.Name)
}

// search: what the archive has of a node that is gone is searched where that is asked for, and said else.
func (c *archiveCluster) search(name string) {
	p := c.as(bob)
	const line = "^part 7$"
	found := name + ":out/many/7:1:part 7\n"
	for _, args := range [][]string{
		{"--archived", line, "job/doomed"}, {line, name}, {"--archived", "--files", "out/many/*", line, "job/doomed"},
	} {
		if got := p.does(append([]string{"grep", "-n", "ci"}, args...)...); got != found {
			c.t.Errorf("grep %q finds %q", args, got)
		}
	}
	p.wantIn(p.does("grep", "-n", "ci", "--archived", "^said on stdout$", "job/doomed"), "said on stdout")
	p.doesNot(1, []string{"nothing was found", "2 archived volumes (see --archived)"}, "grep", "-n", "ci", line, "job/doomed")
	c.as(alice).doesNot(2, []string{"ci", alice, "not read their files"}, "grep", "-n", "ci", "--archived", line)
	c.as(erin).doesNot(2, []string{"ci", "retainedvolumes"}, "grep", "-n", "ci", "--archived", line)
	if s := c.as(erin).katbox(c.t.TempDir(), "grep", "-n", "other", "--archived", line); s.code == 0 || s.stdout != "" {
		c.t.Errorf("erin finds %d %s", s.code, s.stdout)
	}
}
