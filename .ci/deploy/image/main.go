// Command image checks what a registry would get: an OCI image layout with one of
// Katbox's programs for every architecture. It prints what it has checked, and fails at the first
// thing that is not as it should be.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// programs are those of the images, with the user of each and the bytes that bound it, unpacked.
var programs = map[string]struct {
	user string
	most int
}{
	"katbox":            {"0:0", 30 << 20},
	"katbox-gateway":    {"65532:65532", 48 << 20},
	"katbox-controller": {"65532:65532", 56 << 20},
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// descriptor is how the layout's files name one another.
type descriptor struct {
	MediaType string
	Digest    string
	Size      int64
	Platform  struct{ Architecture, OS string }
}

type image struct {
	Architecture, OS string
	Config           struct {
		User            string
		Entrypoint, Cmd []string
		Labels          map[string]string
	}
}

// wanted is what an image has to be.
type wanted struct {
	program, version, revision, binaries string
	// license is the file with Katbox's own.
	license string
	// stamped says that the go command has written the revision into the binaries.
	stamped bool
}

func main() {
	var want wanted
	flag.StringVar(&want.program, "program", "katbox", "katbox, katbox-gateway or katbox-controller")
	layout := flag.String("layout", "", "directory of the image layout")
	flag.StringVar(&want.version, "version", "", "the version that it has to have")
	flag.StringVar(&want.revision, "revision", "", "the revision that it has to have")
	flag.StringVar(&want.binaries, "binaries", "", "directory with the binaries, by architecture")
	flag.StringVar(&want.license, "license", "", "file with Katbox's license")
	flag.BoolVar(&want.stamped, "stamped", true, "the go command has written the revision into the binaries")
	flag.Parse()
	if err := check(*layout, want); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func check(layout string, want wanted) error {
	if _, ok := programs[want.program]; !ok {
		return fmt.Errorf("there is no program %q", want.program)
	}
	images, err := manifests(layout)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, manifest := range images {
		arch := manifest.Platform.Architecture
		if err := checkImage(layout, manifest, want); err != nil {
			return fmt.Errorf("linux/%s: %w", arch, err)
		}
		found[arch] = true
	}
	for arch := range machines {
		if !found[arch] {
			return fmt.Errorf("there is no image for %s", arch)
		}
	}
	return nil
}

// manifests are the images of all architectures.
func manifests(layout string) ([]descriptor, error) {
	content, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return nil, err
	}
	for {
		var index struct{ Manifests []descriptor }
		if err := json.Unmarshal(content, &index); err != nil {
			return nil, err
		}
		if len(index.Manifests) != 1 || !strings.Contains(index.Manifests[0].MediaType, "index") {
			return index.Manifests, nil
		}
		if content, err = blob(layout, index.Manifests[0]); err != nil {
			return nil, err
		}
	}
}

// blob returns a file of the layout, if it is what its name says.
func blob(layout string, d descriptor) ([]byte, error) {
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	if !ok {
		return nil, fmt.Errorf("digest %q is not a sha256", d.Digest)
	}
	content, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", sum))
	if err == nil && fmt.Sprintf("%x", sha256.Sum256(content)) != sum {
		err = fmt.Errorf("%s has other content", d.Digest)
	}
	return content, err
}

func checkImage(layout string, d descriptor, want wanted) error {
	content, err := blob(layout, d)
	if err != nil {
		return err
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		return err
	}
	if content, err = blob(layout, manifest.Config); err != nil {
		return err
	}
	var about image
	if err := json.Unmarshal(content, &about); err != nil {
		return err
	}
	if err := checkConfig(about, d.Platform.Architecture, want); err != nil {
		return err
	}

	var packed int64
	var unpacked int
	all := map[string][]byte{}
	for _, layer := range manifest.Layers {
		content, err := blob(layout, layer)
		if err != nil {
			return err
		}
		packed += layer.Size
		if err := unpack(content, all); err != nil {
			return err
		}
	}
	for _, content := range all {
		unpacked += len(content)
	}
	if is := []string{"/" + want.program, ownLicense, otherLicenses}; !slices.Equal(names(all), is) {
		return fmt.Errorf("its files are %v, not %v", names(all), is)
	}
	binary := all["/"+want.program]
	if most := programs[want.program].most; unpacked >= most {
		return fmt.Errorf("it has %d bytes, and %d are too many", unpacked, most)
	}
	if err := checkBinary(binary, about.Architecture, want); err != nil {
		return err
	}
	works, err := checkLicenses(binary, all, want)
	if err != nil {
		return err
	}
	fmt.Printf("linux/%s: %.1f MB, %.1f MB packed; /%s, static, with the licenses of %d works, labelled %s of %s\n",
		about.Architecture, float64(unpacked)/1e6, float64(packed)/1e6, want.program, works, want.version, want.revision)
	return nil
}

func checkConfig(about image, arch string, want wanted) error {
	if _, ok := machines[arch]; !ok || about.Architecture != arch || about.OS != "linux" {
		return fmt.Errorf("it is for %s/%s", about.OS, about.Architecture)
	}
	if !slices.Equal(about.Config.Entrypoint, []string{"/" + want.program}) || len(about.Config.Cmd) > 0 {
		return fmt.Errorf("it starts %v %v", about.Config.Entrypoint, about.Config.Cmd)
	}
	if about.Config.User != programs[want.program].user {
		return fmt.Errorf("it runs as %q", about.Config.User)
	}
	labels := map[string]string{"version": want.version, "revision": want.revision, "licenses": "Apache-2.0",
		"source": "https://github.com/katbox/katbox"}
	for name, text := range labels {
		if got := about.Config.Labels["org.opencontainers.image."+name]; got != text || text == "" {
			return fmt.Errorf("its label %s is %q, not %q", name, got, text)
		}
	}
	for _, name := range []string{"title", "description"} {
		if about.Config.Labels["org.opencontainers.image."+name] == "" {
			return fmt.Errorf("its label %s is empty", name)
		}
	}
	return nil
}

// unpack adds a layer's files to all.
func unpack(layer []byte, all map[string][]byte) error {
	packed, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		return err
	}
	for files := tar.NewReader(packed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Join("/", header.Name)
		if header.Typeflag != tar.TypeReg && name != "/" && name != "/licenses" {
			return fmt.Errorf("%s is no file", name)
		}
		if header.Typeflag == tar.TypeReg {
			mode := int64(0o755)
			if strings.HasPrefix(name, "/licenses/") {
				mode = 0o644
			}
			if header.Mode&0o7777 != mode {
				return fmt.Errorf("%s has the mode %o", name, header.Mode)
			}
			if all[name], err = io.ReadAll(files); err != nil {
				return err
			}
		}
	}
}

// checkBinary reads it, compares it with what was built, and runs it if it can.
func checkBinary(binary []byte, arch string, want wanted) error {
	program, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	if program.Machine != machines[arch] {
		return fmt.Errorf("/%s is for %s", want.program, program.Machine)
	}
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("/%s needs a dynamic linker", want.program)
		}
	}
	path := filepath.Join(want.binaries, arch, want.program)
	built, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(binary, built) {
		return fmt.Errorf("/%s is not %s", want.program, path)
	}
	if err := checkStamp(binary, want); err != nil {
		return err
	}
	if arch != runtime.GOARCH {
		return nil
	}
	said, err := run(binary, "--version")
	if err != nil {
		return err
	}
	if text := fmt.Sprintf("%s %s (commit %.12s)\n", want.program, want.version, want.revision); said != text {
		return fmt.Errorf("/%s --version says %q, not %q", want.program, said, text)
	}
	return nil
}

// run runs the binary from the image.
func run(binary []byte, args ...string) (string, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "katbox")
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		return "", err
	}
	said, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said)
	}
	return string(said), nil
}

func names(all map[string][]byte) []string {
	var sorted []string
	for name := range all {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}
