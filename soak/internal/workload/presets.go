package workload

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed presets/*.yaml
var presets embed.FS

const (
	presetDir    = "presets/"
	presetSuffix = ".yaml"
)

// Presets are the names of the workloads that come with the program.
func Presets() []string {
	entries, err := presets.ReadDir(strings.TrimSuffix(presetDir, "/"))
	if err != nil {
		panic(err) // It is part of the program.
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), presetSuffix))
	}
	return names
}

// Preset is one of the Presets. The error lists them.
func Preset(name string) (Workload, error) {
	text, err := presets.ReadFile(presetDir + name + presetSuffix)
	if err != nil {
		return Workload{}, fmt.Errorf("there is no workload %q; there are %s", name, enumerate(Presets()))
	}
	return parse(name+presetSuffix, text)
}

// Describe says in a line what a preset is: its file's first line. It is empty
// for an unknown one.
func Describe(name string) string {
	text, err := presets.ReadFile(presetDir + name + presetSuffix)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(first, "# ")
}
