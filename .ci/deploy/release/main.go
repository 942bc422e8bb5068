// Command release checks the files of a release that "make release" has made: that they are all there, that
// the checksums are theirs, that each SBOM lists what "go version -m" lists of its program, and that the
// chart has the release's version. It prints what it has checked, and fails at the first thing that is not as it
// should be.
//
//	release --dir bin/release --binaries bin/linux --plugin bin/plugin --tag v1.2.3 --revision COMMIT
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wanted is what the release has to be, and where its parts are.
type wanted struct{ dir, binaries, plugin, tag, revision string }

func main() {
	var want wanted
	flag.StringVar(&want.dir, "dir", "", "directory of the release")
	flag.StringVar(&want.binaries, "binaries", "", "directory with the images' programs, by architecture")
	flag.StringVar(&want.plugin, "plugin", "", "directory with the plugin's programs, by platform")
	flag.StringVar(&want.tag, "tag", "", "tag of the release, and of its images")
	flag.StringVar(&want.revision, "revision", "", "the commit that it is of")
	flag.Parse()
	if err := check(want); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func check(want wanted) error {
	if want.dir == "" || want.binaries == "" || want.plugin == "" || want.tag == "" || want.revision == "" {
		return errors.New("it takes --dir, --binaries, --plugin, --tag and --revision")
	}
	files, err := checkSums(want.dir)
	if err != nil {
		return err
	}
	programs, err := programs(want)
	if err != nil {
		return err
	}
	expected := []string{"LICENSE", "katbox.yaml", "katbox-" + strings.TrimPrefix(want.tag, "v") + ".tgz"}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		program := programs[name]
		modules, err := checkSBOM(filepath.Join(want.dir, name+sbomSuffix), program, want)
		if err != nil {
			return err
		}
		fmt.Printf("%s%s lists the %d modules of its program, %s of %.12s\n", name, sbomSuffix, modules, want.tag, want.revision)
		expected = append(expected, name+sbomSuffix)
		if strings.HasPrefix(name, "kubectl-katbox_") {
			archive := name + ".tar.gz"
			if strings.HasSuffix(program, ".exe") {
				archive = name + ".zip"
			}
			expected = append(expected, archive)
		}
	}
	slices.Sort(expected)
	if !slices.Equal(files, expected) {
		return fmt.Errorf("%s has %q, not %q", want.dir, files, expected)
	}
	chart := filepath.Join(want.dir, "katbox-"+strings.TrimPrefix(want.tag, "v")+".tgz")
	if err := checkChart(chart, want.tag); err != nil {
		return fmt.Errorf("%s: %w", chart, err)
	}
	fmt.Printf("%s is the chart of %s\n", filepath.Base(chart), want.tag)
	fmt.Printf("checksums.txt has all %d files\n", len(files))
	return nil
}

// programs are the files of all programs, by the name that their SBOM has in a release.
func programs(want wanted) (map[string]string, error) {
	all := map[string]string{}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, program := range []string{"katbox", "katbox-gateway", "katbox-controller"} {
			all[program+"_"+want.tag+"_linux_"+arch] = filepath.Join(want.binaries, arch, program)
		}
	}
	plugins, err := filepath.Glob(filepath.Join(want.plugin, "*_*", "kubectl-katbox*"))
	if err != nil {
		return nil, err
	}
	if len(plugins) != 6 {
		return nil, fmt.Errorf("the plugin is built for %d platforms", len(plugins))
	}
	for _, plugin := range plugins {
		all["kubectl-katbox_"+want.tag+"_"+filepath.Base(filepath.Dir(plugin))] = plugin
	}
	return all, nil
}

// sum is a line of checksums.txt.
var sum = regexp.MustCompile(`^([0-9a-f]{64})  (\S+)$`)

// checkSums fails unless checksums.txt has the checksums of all files in a directory, and returns their names.
func checkSums(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		return nil, err
	}
	var names []string
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := sum.FindStringSubmatch(lines.Text())
		if line == nil {
			return nil, fmt.Errorf("checksums.txt has the line %q", lines.Text())
		}
		content, err := os.ReadFile(filepath.Join(dir, line[2]))
		if err != nil {
			return nil, err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != line[1] {
			return nil, fmt.Errorf("%s has the checksum %s, and checksums.txt says %s", line[2], got, line[1])
		}
		names = append(names, line[2])
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Name() != "checksums.txt" && !slices.Contains(names, entry.Name()) {
			return nil, fmt.Errorf("%s is not in checksums.txt", entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}
