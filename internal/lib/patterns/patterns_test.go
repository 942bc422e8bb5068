package patterns

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// paths are of files, and those with a slash at the end of directories that are empty.
var matchPaths = []string{
	"x", "x.tmp", "a/x", "a/b/x", "a/b/c/x", "b/x", "node_modules/x", "a/node_modules/y", "a/node_modules.bak",
	"out/log.txt", "out/keep.log", "out/a.log", "log/a.log", "deep/log/a.log", "{a}", "a{b,c}d", "abd", "acd", "!x",
	"#x#", "a b", "[x]", "b*", `b\`, "caf\u00e9", "-x", "foo/bar/baz", "foo/baz", "foo/x/y/baz", "foobar/baz", ".hidden",
	"a/.hidden/x", "space ", "x/y/z",
}

// Git's own program has two surprises that its documentation does not: ? is one byte, and ** beside a slash may stand for
// slashes.
var matchPatterns = [][]string{
	{"x"}, {"/x"}, {"x/"}, {"a/x"}, {"/a/x"}, {"**/x"}, {"a/**"}, {"a/**/x"}, {"**/b/**"}, {"node_modules/"},
	{"node_modules"}, {"*.tmp"}, {"*.log"}, {"*.log", "!keep.log"}, {"out", "!out/keep.log"}, {"out/*", "!out/keep.log"},
	{"!x", "x"}, {"x", "!/x"}, {`\!x`}, {"#x#"}, {"a b"}, {`\[x]`}, {"[x]"}, {"[!a]"}, {"[^a]"}, {"[a-c]"}, {"?"}, {"??"},
	{"*"}, {"/*"}, {"**"}, {"/**"}, {"*/"}, {"a/*"}, {"a*/x"}, {"{a}"}, {"a{b,c}d"}, {`\{a\}`}, {`b\*`}, {"caf*"},
	{"foo/**/baz"}, {"foo**baz"}, {"foo/**baz"}, {"**foo/baz"}, {".*"}, {"*den"}, {"a/b/c/"}, {"a/b/x/"}, {"log/"},
	{"/log/"}, {"deep/log"}, {"deep/*/a.log"}, {"deep/*"}, {"*/a.log"}, {"**/log/*.log"}, {"space "}, {"-x"}, {"nothing"},
	{"x/y/"}, {"/"}, {""}, {"**/"}, {"a/**/"}, {"***"},
}

// TestPatternsAreGits: what is excluded is what git takes these patterns for, in a .gitignore's meaning.
func TestPatternsAreGits(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("this machine lacks git: %v", err)
	}
	top := t.TempDir()
	for _, path := range matchPaths {
		path = filepath.Join(top, path)
		// Two of them want one name: a directory wins.
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			must(t, os.WriteFile(path, nil, 0o666))
		}
	}
	git(t, top, "init", "-q")
	for _, texts := range matchPatterns {
		t.Run(strings.Join(texts, " "), func(t *testing.T) {
			// In a file a # begins a comment, and spaces at the end are none of a pattern.
			want := git(t, top, append([]string{"ls-files", "-z", "--others", "--exclude=.git"}, excludes(texts)...)...)
			if got := kept(t, top, texts); !slices.Equal(got, want) {
				t.Errorf("kept are\n%q, by git\n%q", got, want)
			}
		})
	}
}

func excludes(texts []string) (flags []string) {
	for _, text := range texts {
		flags = append(flags, "--exclude="+text)
	}
	return flags
}

// git returns the names that git prints.
func git(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	names := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	slices.Sort(names)
	return names
}

// kept returns the files that patterns leave.
func kept(t *testing.T, top string, texts []string) (names []string) {
	t.Helper()
	p, err := Parse(texts)
	must(t, err)
	must(t, filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(top, path)
		switch {
		case err != nil || name == ".":
			return err
		case name == ".git":
			return filepath.SkipDir
		case p.Match(name, d.IsDir()):
			if d.IsDir() {
				return filepath.SkipDir
			}
		case !d.IsDir():
			names = append(names, name)
		}
		return nil
	}))
	slices.Sort(names)
	return names
}

// TestPatternsOfAShell: a path as a shell completes it is that path.
func TestPatternsOfAShell(t *testing.T) {
	p, err := Parse([]string{"./x", "./a/"})
	must(t, err)
	for name, want := range map[string]bool{"x": true, "b/x": false, "a": true, "b/a": false} {
		if got := p.Match(name, true); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

// TestBadPatterns are refused; what has matched nothing is known.
func TestBadPatterns(t *testing.T) {
	for _, text := range []string{"[", "a[", `a\`, "[[:alpha:]]", "x/["} {
		if _, err := Parse([]string{text}); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	p, err := Parse([]string{"y", "x", "d/", "!z"})
	must(t, err)
	for _, name := range []string{"x", "d"} {
		p.Match(name, false)
	}
	if got := fmt.Sprint(p.Unmatched()); got != "[0 2 3]" {
		t.Errorf("%s", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
