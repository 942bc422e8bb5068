package deploy

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// TestReadmeIsGenerated from the comments of values.yaml.
func TestReadmeIsGenerated(t *testing.T) {
	want, err := output("helm-docs", "--dry-run", "--log-level", "warning", "--chart-search-root", "../../deploy/helm",
		"--sort-values-order", "file")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil || !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(want)) {
		t.Errorf("the chart's README.md is not what values.yaml says (%v): run make docs", err)
	}
	for row := range strings.SplitSeq(string(got), "\n") {
		if cells := strings.Split(row, " | "); strings.HasPrefix(row, "| ") && len(cells) == 4 && strings.Trim(cells[3], " |") == "" {
			t.Errorf("the value is not explained: %s", row)
		}
	}
}

// packaged is the chart as people get it.
func packaged(t *testing.T) *helmchart.Chart {
	t.Helper()
	dir := t.TempDir()
	if _, err := output("helm", "package", chart, "--destination", dir); err != nil {
		t.Fatal(err)
	}
	c, err := loader.Load(files(t, dir+"/*.tgz")[0])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPackage has the README, which Artifact Hub shows, and nothing that only the repository needs.
func TestPackage(t *testing.T) {
	c := packaged(t)
	var names []string
	for _, file := range c.Raw {
		names = append(names, file.Name)
	}
	for _, name := range []string{"README.md", "values.schema.json", "files/rules.yaml", "files/dashboard.json",
		"files/admission-policy.yaml"} {
		if !slices.Contains(names, name) {
			t.Errorf("the package has no %s", name)
		}
	}
	for _, name := range names {
		if strings.HasPrefix(filepath.Base(name), ".") || strings.HasSuffix(name, ".gotmpl") {
			t.Errorf("the package has %s", name)
		}
	}
}

// TestMetadata: it says what Artifact Hub asks for, and the images that it names are those of the values.
func TestMetadata(t *testing.T) {
	about := packaged(t).Metadata
	if len(about.Maintainers) == 0 || len(about.Sources) == 0 || about.Home == "" {
		t.Errorf("there are %d maintainers and %d sources", len(about.Maintainers), len(about.Sources))
	}
	if about.Annotations["artifacthub.io/license"] != "Apache-2.0" || about.Annotations["artifacthub.io/category"] != "storage" {
		t.Errorf("the annotations are %v", about.Annotations)
	}
	var links []struct{ Name, URL string }
	if err := yaml.UnmarshalStrict([]byte(about.Annotations["artifacthub.io/links"]), &links); err != nil || len(links) == 0 {
		t.Errorf("there are %d links (%v)", len(links), err)
	}
	for _, link := range append(links, struct{ Name, URL string }{"icon", about.Icon}) {
		if link.Name == "" || !strings.HasPrefix(link.URL, "https://") {
			t.Errorf("the link %+v leads nowhere", link)
		}
	}
	var images []struct {
		Name, Image string
		Platforms   []string
	}
	if err := yaml.UnmarshalStrict([]byte(about.Annotations["artifacthub.io/images"]), &images); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, image := range images {
		named[image.Image] = true
	}
	used := map[string]bool{}
	for _, args := range [][]string{everything, {"--set", "sidecars.enabled=true"}} {
		for _, image := range imagesOf(t, helm(t, args...)) {
			used[image] = true
			if !named[image] {
				t.Errorf("artifacthub.io/images has no %s", image)
			}
		}
	}
	for image := range named {
		if !used[image] {
			t.Errorf("artifacthub.io/images has %s, which the chart does not use", image)
		}
	}
}

// TestIcon is a picture that is in the repository.
func TestIcon(t *testing.T) {
	url := packaged(t).Metadata.Icon
	path, ok := strings.CutPrefix(url, "https://raw.githubusercontent.com/katbox/katbox/main/")
	if !ok {
		t.Fatalf("the icon is %s", url)
	}
	content, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	root := ""
	for decoder := xml.NewDecoder(bytes.NewReader(content)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && root == "" {
			root = start.Name.Local
		}
	}
	if root != "svg" {
		t.Errorf("the icon is a %s", root)
	}
}
