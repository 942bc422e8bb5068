package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// built are the platforms of "make plugin".
var built = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

// completion is in the archives beside the program and the licenses.
const completion = "../../cmd/kubectl-katbox/kubectl_complete-katbox"

// krewManifest is krew's manifest, as far as ours uses it.
type krewManifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Version, Homepage, Description, Caveats string
		ShortDescription                        string `yaml:"shortDescription"`
		Platforms                               []struct {
			Selector struct {
				MatchLabels struct{ OS, Arch string } `yaml:"matchLabels"`
			}
			URI, Sha256, Bin string
		}
	}
}

// TestArchives: the manifest has what krew demands, and fits the archives. With KATBOX_PLUGIN, the
// directory of "make plugin", they are those that were built; otherwise they are packed from files that are
// no programs.
func TestArchives(t *testing.T) {
	dir := os.Getenv("KATBOX_PLUGIN")
	if dir == "" {
		dir = madeUp(t, "v1.2.3")
	}
	manifest := readManifest(t, filepath.Join(dir, "katbox.yaml"))
	sums, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range manifest.Spec.Platforms {
		system, arch := p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch
		found = append(found, system+"/"+arch)
		name := path.Base(p.URI)
		if start := "kubectl-katbox_" + manifest.Spec.Version + "_" + system + "_" + arch + "."; !strings.HasPrefix(name, start) {
			t.Errorf("%s does not begin with %s", name, start)
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(content)); sum != p.Sha256 || !strings.Contains(string(sums), sum+"  "+name+"\n") {
			t.Errorf("%s has the checksum %s; the manifest says %s, and the checksums are\n%s", name, sum, p.Sha256, sums)
		}
		files := wantFiles(t, filepath.Join(dir, system+"_"+arch), name, content, p.Bin)
		if os.Getenv("KATBOX_PLUGIN") != "" {
			wantBuild(t, name, files, p.Bin, system, arch)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, built) {
		t.Errorf("the manifest has the platforms %q, want %q", found, built)
	}
	if lines := strings.Count(string(sums), "\n"); lines != len(built) {
		t.Errorf("there are %d checksums", lines)
	}
}

// readManifest reads a manifest, and fails unless krew takes it.
func readManifest(t *testing.T, name string) krewManifest {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var m krewManifest
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&m); err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "katbox" {
		t.Errorf("it is %s %s %q", m.APIVersion, m.Kind, m.Metadata.Name)
	}
	if semantic(m.Spec.Version) != m.Spec.Version {
		t.Errorf("the version %q is none for krew", m.Spec.Version)
	}
	// A longer one is cut in krew's list.
	if short := m.Spec.ShortDescription; short == "" || len(short) > 50 || strings.HasSuffix(short, ".") {
		t.Errorf("the short description is %q", short)
	}
	if m.Spec.Homepage == "" || m.Spec.Description == "" || m.Spec.Caveats == "" {
		t.Errorf("it does not say what the plugin is:\n%s", content)
	}
	return m
}

// wantFiles fails unless an archive has the program, the licenses beside it in dir and the script for
// completions, and nothing else. It returns the files.
func wantFiles(t *testing.T, dir, name string, archive []byte, program string) map[string]file {
	t.Helper()
	files, err := unpacked(name, archive)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	beside := []string{completion}
	if strings.HasSuffix(program, ".exe") {
		beside[0] += ".cmd"
	}
	for _, license := range licenses {
		beside = append(beside, filepath.Join(dir, license))
	}
	if len(files) != 1+len(beside) || len(files[program].content) == 0 || files[program].mode != 0o755 {
		t.Errorf("%s: no executable %s among %d files", name, program, len(files))
	}
	for _, other := range beside {
		want, err := os.ReadFile(other)
		if err != nil {
			t.Fatal(err)
		}
		if got := files[filepath.Base(other)]; !bytes.Equal(got.content, want) || got.mode != mode(other) {
			t.Errorf("%s: %s is another, with mode %s", name, other, got.mode)
		}
	}
	return files
}

type file struct {
	content []byte
	mode    fs.FileMode
}

// unpacked returns the files of an archive; its name says what it is.
func unpacked(name string, archive []byte) (map[string]file, error) {
	files := map[string]file{}
	if strings.HasSuffix(name, ".zip") {
		reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			return nil, err
		}
		for _, f := range reader.File {
			content, err := fs.ReadFile(reader, f.Name)
			if err != nil {
				return nil, err
			}
			files[f.Name] = file{content, f.Mode()}
		}
		return files, nil
	}
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	reader := tar.NewReader(plain)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return nil, err
		}
		files[header.Name] = file{content, header.FileInfo().Mode()}
	}
}

// wantBuild fails unless a program was built for its platform, as "make plugin" does, and the archive has a
// license for each module in it.
func wantBuild(t *testing.T, name string, files map[string]file, program, system, arch string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(files[program].content))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	got := map[string]string{"path": info.Path}
	for _, setting := range info.Settings {
		got[setting.Key] = setting.Value
	}
	for key, want := range map[string]string{
		"path": "github.com/katbox/katbox/cmd/kubectl-katbox", "GOOS": system, "GOARCH": arch, "CGO_ENABLED": "0", "-trimpath": "true",
	} {
		if got[key] != want {
			t.Errorf("%s was built with %s=%q, want %q", name, key, got[key], want)
		}
	}
	texts := string(files["THIRD-PARTY-LICENSES.txt"].content)
	works := []string{"Go " + info.GoVersion}
	for _, module := range info.Deps {
		works = append(works, module.Path+" "+module.Version)
	}
	for _, work := range works {
		if !strings.Contains(texts, "\n"+work+": ") {
			t.Errorf("%s has no license of %s", name, work)
		}
	}
}

// madeUp packs files that are no programs, for all platforms, and returns the directory.
func madeUp(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range built {
		system, arch, _ := strings.Cut(platform, "/")
		program := filepath.Join(dir, system+"_"+arch, "kubectl-katbox")
		if system == "windows" {
			program += ".exe"
		}
		if err := os.Mkdir(filepath.Dir(program), 0o755); err != nil {
			t.Fatal(err)
		}
		// Nothing of the file but its content is in the archive.
		if err := os.WriteFile(program, []byte("the program for "+platform), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, license := range licenses {
			if err := os.WriteFile(filepath.Join(filepath.Dir(program), license), []byte(license+" for "+platform), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	args := []string{"--version", version, "--url", "https://example.com/" + version + "/", "--completion", completion, dir}
	if err := run(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestReproducible: the same programs make the same files.
func TestReproducible(t *testing.T) {
	one, other := madeUp(t, "v1.2.3"), madeUp(t, "v1.2.3")
	files, err := filepath.Glob(filepath.Join(one, "*.*"))
	if err != nil || len(files) != len(built)+2 {
		t.Fatalf("there are %q: %v", files, err)
	}
	for _, name := range files {
		first, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(other, filepath.Base(name)))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s is another file the second time: %v", filepath.Base(name), err)
		}
	}
}

// TestSemantic: any version makes one that krew takes.
func TestSemantic(t *testing.T) {
	for version, want := range map[string]string{
		"v0.1.0":                  "v0.1.0",
		"0.1.0":                   "v0.1.0",
		"v1.2.3-12-gabc1234":      "v1.2.3-12-gabc1234",
		"v1.2.3-rc.1":             "v1.2.3-rc.1",
		"v1.2.3+katbox":           "v1.2.3",
		"1f8feeb-dirty":           "v0.0.0-dev-1f8feeb-dirty",
		"0123456":                 "v0.0.0-dev-0123456",
		"v1.2":                    "v0.0.0-dev-v1-2",
		"v01.2.3":                 "v0.0.0-dev-v01-2-3",
		"v1.2.3-01":               "v0.0.0-dev-v1-2-3-01",
		"dev":                     "v0.0.0-dev-dev",
		"feature/x":               "v0.0.0-dev-feature-x",
		"v1.2.3\nkind: Something": "v0.0.0-dev-v1-2-3-kind-Something",
	} {
		got := semantic(version)
		if got != want {
			t.Errorf("%q becomes %q, want %q", version, got, want)
		}
		if semantic(got) != got {
			t.Errorf("%q becomes %q in turn", got, semantic(got))
		}
	}
}

// TestWrongUse: what is missing is said.
func TestWrongUse(t *testing.T) {
	empty := t.TempDir()
	for _, args := range [][]string{
		{}, {empty}, {"--version", "v1.2.3", empty}, {"--nope"},
		{"--version", "v1.2.3", "--url", "x", "--completion", completion, empty},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
