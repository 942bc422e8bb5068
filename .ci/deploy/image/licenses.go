package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"strings"
)

// The files of each image beside its program.
const (
	ownLicense    = "/licenses/LICENSE"
	otherLicenses = "/licenses/THIRD-PARTY-LICENSES.txt"
)

// checkLicenses fails unless an image has Katbox's license, and names a license for every module in its
// program. It returns how many there are, with Go.
func checkLicenses(binary []byte, all map[string][]byte, want wanted) (int, error) {
	license, err := os.ReadFile(want.license)
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(all[ownLicense], license) {
		return 0, fmt.Errorf("its %s is not %s", ownLicense, want.license)
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return 0, err
	}
	works := []string{"Go " + info.GoVersion}
	for _, module := range info.Deps {
		for module.Replace != nil {
			module = module.Replace
		}
		works = append(works, module.Path+" "+module.Version)
	}
	text := string(all[otherLicenses])
	for _, work := range works {
		if !strings.Contains(text, "\n  "+work+"  ") || !strings.Contains(text, "\n"+work+": ") {
			return 0, fmt.Errorf("%s has no license of %s", otherLicenses, work)
		}
	}
	return len(works), nil
}

// checkStamp fails unless the binary says what it was built from, as "go version -m" reads it.
func checkStamp(binary []byte, want wanted) error {
	if !want.stamped {
		return nil
	}
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return err
	}
	revision := ""
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			revision = setting.Value
		}
	}
	if !strings.HasPrefix(info.Main.Version, "v") || revision != want.revision {
		return fmt.Errorf("go version -m says %s of %q, not a version of %s", info.Main.Version, revision, want.revision)
	}
	return nil
}
