package optin

import (
	"slices"
	"strings"
)

// Preset is what is known of the pods that one controller makes. The API server reads presets from the policy's ConfigMap,
// where an administrator may change them and add others.
type Preset struct {
	// Name is that of the controller.
	Name string
	// Label is the key of a label that its pods have.
	Label string
	// Keep are names of volumes to convert that a rule for names would leave alone, and Leave those to leave alone; the last
	// character may be a *, for any characters.
	Keep  []string
	Leave []Left
	// Mount is a path that its pods write to without a volume: they get one there; "" for none.
	Mount string
}

// Left are volumes of a name, and why they are left alone.
type Left struct{ Volumes, Because string }

// Presets are those that are shipped.
var Presets = []Preset{
	{Name: "actions", Label: "actions-ephemeral-runner", Keep: []string{"work"}, Leave: []Left{
		{"dind-sock", "has the socket of the Docker daemon"},
		{"dind-externals", "has a copy of the runner's own programs"},
		{"externals", "has a copy of the runner's own programs"},
	}},
	{Name: "airflow", Label: "dag_id", Keep: []string{"logs"}, Leave: []Left{
		{"dags", "has a clone of a repository, and may have its credentials"},
		{"xcom", "has a result that Airflow reads itself"},
	}},
	{Name: "argo", Label: "workflows.argoproj.io/workflow", Keep: []string{"input-artifacts"}, Leave: []Left{
		{"var-run-argo", "has the programs of Argo"},
		{"tmp-dir-argo", "is the scratch space of Argo's own containers"},
	}},
	{Name: "gitlab", Label: "job.runner.gitlab.com/pod", Keep: []string{"repo", "logs"}, Leave: []Left{
		{"scripts", "has scripts with the variables of the job, secret ones too"},
	}},
	{Name: "ray", Label: "ray.io/node-type", Keep: []string{"ray-logs"}, Mount: "/tmp/ray"},
	{Name: "spark", Label: "spark-role", Keep: []string{"spark-local-dir-*"}},
	{Name: "tekton", Label: "tekton.dev/taskRun", Keep: []string{"tekton-internal-workspace"}},
}

// What the ConfigMap has beside presets.
const (
	// PresetPrefix begins the keys of presets.
	PresetPrefix = "preset."
	// AffinityKey is Required or None: whether a pod with a converted volume needs a node with the label [api.Topology].
	AffinityKey      = "nodeAffinity"
	AffinityRequired = "Required"
	AffinityNone     = "None"
	// TmpKey is true where pods that mount nothing at /tmp get a volume there.
	TmpKey = "tmp"
	Tmp    = "/tmp"
)

// The words that lines of a preset begin with.
const (
	labelLine = "label "
	keepLine  = "keep "
	leaveLine = "leave "
	mountLine = "mount "
)

// Text is the preset as the ConfigMap has it: a line for each thing that is known.
func (p Preset) Text() string {
	lines := []string{labelLine + p.Label}
	for _, name := range p.Keep {
		lines = append(lines, keepLine+name)
	}
	for _, left := range p.Leave {
		lines = append(lines, leaveLine+left.Volumes)
	}
	if p.Mount != "" {
		lines = append(lines, mountLine+p.Mount)
	}
	return strings.Join(lines, "\n")
}

// Params are the data of the ConfigMap.
type Params map[string]string

// Defaults are the data as they are shipped.
func Defaults() Params {
	data := Params{AffinityKey: AffinityRequired, TmpKey: "false"}
	for _, p := range Presets {
		data[PresetPrefix+p.Name] = p.Text()
	}
	return data
}

// presets returns the lines of the presets for a pod with these labels, in the order of their names.
func (p Params) presets(labels map[string]string) (all [][]string) {
	var names []string
	for key := range p {
		if strings.HasPrefix(key, PresetPrefix) {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	for _, key := range names {
		lines := strings.Split(p[key], "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		if slices.ContainsFunc(lines, func(line string) bool {
			label, ok := strings.CutPrefix(line, labelLine)
			_, has := labels[label]
			return ok && has
		}) {
			all = append(all, lines)
		}
	}
	return all
}

// has returns the line with this word that a name matches; "" if there is none.
func has(presets [][]string, word, name string) string {
	for _, lines := range presets {
		for _, line := range lines {
			if line == word+name || strings.HasPrefix(line, word) && strings.HasSuffix(line, "*") &&
				strings.HasPrefix(word+name, strings.TrimSuffix(line, "*")) {
				return line
			}
		}
	}
	return ""
}

// because is why a line leaves a volume alone.
func because(line string) string {
	for _, p := range Presets {
		for _, left := range p.Leave {
			if line == leaveLine+left.Volumes {
				return left.Because
			}
		}
	}
	return "a preset of this cluster leaves volumes of that name alone"
}
