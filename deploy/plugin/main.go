// Command plugin packs kubectl-katbox for those who install it: an archive for each platform,
// the checksums of the archives, and the manifest that krew installs from.
//
// It is run by "make plugin", which has built the programs before. The same programs make the same
// files, byte for byte: the archives have fixed times, owners, modes and order.
//
//	plugin --version v0.1.0 --url URL --completion FILE DIR
//
// DIR has a directory OS_ARCH for each platform, with its program and the licenses of what is in it. The
// files are written beside these directories.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// licenses are Katbox's own and those of what is linked into the program. Both are beside it.
var licenses = []string{"LICENSE", "THIRD-PARTY-LICENSES.txt"}

// settings are what the files are made of.
type settings struct {
	// version is any text; the files have it as a semantic version.
	version string
	// url is where the archives will be: the manifest names each as url/ARCHIVE.
	url string
	// completion is a file that each archive has beside the program. On Windows it is completion.cmd.
	completion string
	// dir has the programs, and gets the files.
	dir string
}

// platform is what a program was built for, and what was made for it.
type platform struct {
	OS, Arch string
	// Program is the name of the file in the archive, Archive that of the archive itself.
	Program, Archive string
	// URL is where the archive will be, SHA256 its checksum in hexadecimal digits.
	URL, SHA256 string
}

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("plugin", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.version, "version", "", "version of the programs")
	flags.StringVar(&s.url, "url", "", "where the archives will be: the manifest names each as URL/ARCHIVE")
	flags.StringVar(&s.completion, "completion", "", "script that kubectl runs for completions; that of Windows has the same name and .cmd")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || s.version == "" || s.url == "" || s.completion == "" {
		return errors.New("it takes --version, --url, --completion and one directory")
	}
	s.dir = flags.Arg(0)
	return pack(s)
}

// pack writes all files.
func pack(s settings) error {
	programs, err := filepath.Glob(filepath.Join(s.dir, "*_*", "kubectl-katbox*"))
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("%s has no OS_ARCH/kubectl-katbox", s.dir)
	}
	number := semantic(s.version)
	var platforms []platform
	var sums strings.Builder
	for _, program := range programs {
		p, err := packOne(s, number, program)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		platforms = append(platforms, p)
		fmt.Fprintf(&sums, "%s  %s\n", p.SHA256, p.Archive)
	}
	text, err := manifest(number, platforms)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "checksums.txt"), []byte(sums.String()), 0o644),
		os.WriteFile(filepath.Join(s.dir, "katbox.yaml"), text, 0o644),
	)
}

// packOne writes the archive of one program.
func packOne(s settings, number, program string) (platform, error) {
	name := filepath.Base(filepath.Dir(program))
	p := platform{Program: filepath.Base(program)}
	p.OS, p.Arch, _ = strings.Cut(name, "_")
	form, completion := tarball, s.completion
	p.Archive = "kubectl-katbox_" + number + "_" + name + ".tar.gz"
	if p.OS == "windows" {
		form, completion = zipped, completion+".cmd"
		p.Archive = "kubectl-katbox_" + number + "_" + name + ".zip"
	}
	p.URL = strings.TrimSuffix(s.url, "/") + "/" + p.Archive
	files := []string{program}
	for _, license := range licenses {
		files = append(files, filepath.Join(filepath.Dir(program), license))
	}
	content, err := form(append(files, completion))
	if err != nil {
		return p, err
	}
	p.SHA256 = fmt.Sprintf("%x", sha256.Sum256(content))
	return p, os.WriteFile(filepath.Join(s.dir, p.Archive), content, 0o644)
}
