package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

// sbomSuffix ends the name of an SBOM in CycloneDX's JSON.
const sbomSuffix = ".cdx.json"

// bom is an SBOM, as far as this looks.
type bom struct {
	BomFormat string
	Metadata  struct {
		Component  component
		Properties []struct{ Name, Value string }
	}
	Components []component
}

type component struct{ Name, Version, Purl string }

// checkSBOM fails unless an SBOM lists what a program says of itself: its version and the modules that are
// linked into it, with Go. It returns how many these are.
func checkSBOM(name, program string, want wanted) (int, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var sbom bom
	if err := json.Unmarshal(content, &sbom); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return 0, err
	}
	if err := checkStamp(info, want); err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	if main := sbom.Metadata.Component; sbom.BomFormat != "CycloneDX" || main.Name != info.Main.Path || main.Version != want.tag {
		return 0, fmt.Errorf("%s is a %s of %s %s, not of %s %s", name, sbom.BomFormat, main.Name, main.Version, info.Main.Path, want.tag)
	}
	listed := map[string]string{}
	for _, c := range sbom.Components {
		listed[c.Name] = c.Version
		if !strings.HasPrefix(c.Purl, "pkg:golang/"+c.Name+"@") {
			return 0, fmt.Errorf("%s: %s has the package URL %q", name, c.Name, c.Purl)
		}
	}
	linked := map[string]string{"std": info.GoVersion}
	for _, module := range info.Deps {
		for module.Replace != nil {
			module = module.Replace
		}
		linked[module.Path] = module.Version
	}
	for module, version := range linked {
		if listed[module] != version {
			return 0, fmt.Errorf("%s lists %s %q, and the program has %q", name, module, listed[module], version)
		}
	}
	for module := range listed {
		if linked[module] == "" {
			return 0, fmt.Errorf("%s lists %s, which the program does not have", name, module)
		}
	}
	return len(linked), nil
}

// checkStamp fails unless a program has the version and the commit of the release, as "go version -m" prints
// them.
func checkStamp(info *debug.BuildInfo, want wanted) error {
	if info.Main.Version != want.tag {
		return fmt.Errorf("go version -m says %q, not %s", info.Main.Version, want.tag)
	}
	got := map[string]string{}
	for _, setting := range info.Settings {
		got[setting.Key] = setting.Value
	}
	for key, value := range map[string]string{
		"vcs.revision": want.revision, "vcs.modified": "false", "-trimpath": "true", "CGO_ENABLED": "0",
	} {
		if got[key] != value {
			return fmt.Errorf("go version -m says %s=%q, not %q", key, got[key], value)
		}
	}
	return nil
}
