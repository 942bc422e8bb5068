//go:build e2e

package e2e

import "strings"

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
	p.doesNot(1, []string{"nothing was found", "2 archived volumes of job/doomed: see --archived"}, "grep", "-n", "ci", line, "job/doomed")
	c.as(alice).doesNot(2, []string{"ci", alice, "not read their files"}, "grep", "-n", "ci", "--archived", line)
	c.as(erin).doesNot(2, []string{"ci", "retainedvolumes"}, "grep", "-n", "ci", "--archived", line)
	if s := c.as(erin).katbox(c.t.TempDir(), "grep", "-n", "other", "--archived", line); s.code == 0 || s.stdout != "" {
		c.t.Errorf("erin finds %d %s", s.code, s.stdout)
	}
}
