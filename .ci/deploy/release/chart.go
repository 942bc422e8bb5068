package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// epoch is the time of every file in the archives.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// checkChart fails unless an archive is Katbox's chart of a tag, and has nothing in it that another day or
// another machine would make different.
func checkChart(name, tag string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	found := map[string]string{}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || header.Mode != 0o644 || header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(epoch) {
			return fmt.Errorf("%s is a file of %d:%d with mode %o of %s", header.Name, header.Uid, header.Gid, header.Mode, header.ModTime)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		found[header.Name] = string(content)
	}
	for _, needed := range []string{"katbox/values.yaml", "katbox/values.schema.json", "katbox/templates/daemonset.yaml"} {
		if found[needed] == "" {
			return fmt.Errorf("it has no %s", needed)
		}
	}
	var about struct {
		Name, Version, AppVersion string
		Annotations               map[string]string
	}
	if err := yaml.Unmarshal([]byte(found["katbox/Chart.yaml"]), &about); err != nil {
		return err
	}
	if about.Name != "katbox" || about.Version != strings.TrimPrefix(tag, "v") || about.AppVersion != tag {
		return fmt.Errorf("it is %s %s of %s", about.Name, about.Version, about.AppVersion)
	}
	for line := range strings.SplitSeq(about.Annotations["artifacthub.io/images"], "\n") {
		if strings.Contains(line, "/katbox/katbox") && !strings.HasSuffix(line, ":"+tag) {
			return fmt.Errorf("an annotation has the image %q", line)
		}
	}
	return nil
}
