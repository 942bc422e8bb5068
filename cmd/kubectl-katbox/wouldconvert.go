package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/optin"
	"github.com/katbox/katbox/internal/model/terminal"
)

// manifestFile is a flag as kubectl has it.
const manifestFile = "filename"

// wouldConvert says what the policy for emptyDir volumes does with pods. It changes nothing.
type wouldConvert struct {
	enabled      bool
	file, params string

	*session
	table *terminal.Table
	data  optin.Params
	// seen are the namespaces of the pods so far.
	seen map[string]optin.Metadata
}

func (w *wouldConvert) define(flags *pflag.FlagSet) {
	flags.BoolVar(&w.enabled, "would-convert", false, "say which emptyDir volumes of pods the policy makes Katbox volumes of")
	flags.StringVarP(&w.file, manifestFile, "f", "", "of the pods that a file of manifests makes, not those that run; - is standard input")
	flags.StringVar(&w.params, "params", optin.Home+"/"+optin.Policy, "the ConfigMap of the policy, as NAMESPACE/NAME")
}

// run shows a line for each volume of each pod.
func (w *wouldConvert) run(ctx context.Context, s *session) error {
	w.session, w.seen = s, map[string]optin.Metadata{}
	namespace, name, ok := strings.Cut(w.params, "/")
	if !ok {
		return verbs.WrongUsage("--params is NAMESPACE/NAME, not %s", verbs.Quoted(w.params))
	}
	var err error
	w.data, err = s.client.OptInParams(ctx, namespace, name)
	switch {
	case verbs.HasCode(err, 404):
		s.warn(fmt.Sprintf("there is no ConfigMap %s: unless the policy has another, this cluster converts nothing yet. With what is shipped:",
			w.params))
		w.data = optin.Defaults()
	case verbs.HasCode(err, 403):
		s.warn(fmt.Sprintf("you may not read the ConfigMap %s, in which presets may have been changed. With what is shipped:", w.params))
		w.data = optin.Defaults()
	case err != nil:
		return s.client.Explain(ctx, "", err)
	}
	header := []string{"POLICY", "NAMESPACE", "POD", "VOLUME", "WHY, OR WITH WHICH ATTRIBUTES"}
	if s.namespace != "" && w.file == "" {
		header = slices.Delete(header, 1, 2)
	}
	w.table = terminal.NewTable(s.Stdout, header...)
	var pods []*optin.Pod
	if w.file != "" {
		pods, err = w.read()
	} else if err = s.client.RunningPods(ctx, s.namespace, func(p *optin.Pod) { pods = append(pods, p) }); err != nil {
		err = fmt.Errorf("list the pods: %w", s.client.Explain(ctx, "", err))
	}
	if err != nil {
		return err
	}
	for _, p := range pods {
		if err := w.show(ctx, p); err != nil {
			return err
		}
	}
	if len(pods) == 0 {
		fmt.Fprintln(s.Stderr, "no pods")
		return nil
	}
	return w.table.Flush()
}

// namespaceOf returns the labels and annotations of a namespace, with the label that converts volumes if it has none.
func (w *wouldConvert) namespaceOf(ctx context.Context, name string) (optin.Metadata, error) {
	if m, ok := w.seen[name]; ok {
		return m, nil
	}
	m, err := w.client.NamespaceMetadata(ctx, name)
	label := optin.Label + "=" + optin.Keep
	switch {
	case verbs.HasCode(err, 403), verbs.HasCode(err, 404):
		w.warn(fmt.Sprintf("the labels and annotations of namespace %s are not known (%v). As if it had the label %s, and no annotations:",
			name, err, label))
	case err != nil:
		return m, w.client.Explain(ctx, "", err)
	case m.Labels[optin.Label] == "":
		w.warn(fmt.Sprintf("namespace %s has no label %s. As if it had it:", name, label))
	}
	if m.Labels = maps.Clone(m.Labels); m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[optin.Label] = cmp.Or(m.Labels[optin.Label], optin.Keep)
	w.seen[name] = m
	return m, nil
}

// show adds the lines of a pod.
func (w *wouldConvert) show(ctx context.Context, p *optin.Pod) error {
	namespace, err := w.namespaceOf(ctx, p.Metadata.Namespace)
	if err != nil {
		return err
	}
	d := optin.Decision{Because: optin.In(p.Metadata.Namespace, namespace.Labels, p.Metadata.Labels)}
	if d.Because == "" {
		d = w.data.Decide(p, namespace.Annotations)
	}
	if d.Because != "" {
		w.line("leaves", p, terminal.Unknown, d.Because)
		return nil
	}
	lines := 0
	for i, f := range d.Volumes {
		switch v := &p.Spec.Volumes[i]; {
		case v.CSI == api.DriverName:
			w.line("leaves", p, f.Name, "is a Katbox volume"+asked(v.Attributes))
		case !v.IsEmptyDir:
			continue
		case f.Because != "":
			w.line("leaves", p, f.Name, f.Because)
		default:
			w.line("converts", p, f.Name, strings.TrimPrefix(asked(f.Attributes), " with "))
		}
		lines++
	}
	if d.Added != nil {
		w.line("adds", p, d.Added.Volume, "at "+d.Added.Path+asked(d.Added.Attributes))
		lines++
	}
	if lines == 0 {
		w.line("leaves", p, terminal.Unknown, "has no emptyDir volumes")
	}
	return nil
}

// asked is what a volume asks for, in words.
func asked(attributes map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if key != api.KeyConverted {
			words = append(words, key+"="+attributes[key])
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " with " + strings.Join(words, ", ")
}

func (w *wouldConvert) line(does string, p *optin.Pod, volume, text string) {
	cells := []string{does, p.Metadata.Namespace, cmp.Or(p.Metadata.Name, p.Metadata.GenerateName), volume, text}
	if w.namespace != "" && w.file == "" {
		cells = slices.Delete(cells, 1, 2)
	}
	w.table.Row(cells...)
}

// read returns the pods of the manifests of a file, each named by what makes it.
func (w *wouldConvert) read() (pods []*optin.Pod, err error) {
	from := w.Stdin
	if w.file != "-" {
		file, err := os.Open(w.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(from, 4096); ; {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return pods, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", w.file, err)
		}
		if err := w.add(&pods, document); err != nil {
			return nil, fmt.Errorf("%s: %w", w.file, err)
		}
	}
}

// manifest is what is looked at of an object, to find the pod that it makes.
type manifest struct {
	Kind     string            `json:"kind"`
	Metadata optin.Metadata    `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
	Spec     struct {
		Template    *optin.Pod `json:"template"`
		JobTemplate struct {
			Spec struct {
				Template *optin.Pod `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

func (w *wouldConvert) add(pods *[]*optin.Pod, document []byte) error {
	if string(document) == "null" || len(document) == 0 {
		return nil
	}
	var m manifest
	if err := json.Unmarshal(document, &m); err != nil {
		return err
	}
	for _, item := range m.Items {
		if err := w.add(pods, item); err != nil {
			return err
		}
	}
	pod := cmp.Or(m.Spec.Template, m.Spec.JobTemplate.Spec.Template)
	switch {
	case m.Items != nil:
		return nil
	case m.Kind == "Pod":
		pod = &optin.Pod{}
		if err := json.Unmarshal(document, pod); err != nil {
			return err
		}
	case pod == nil || len(pod.Spec.Containers) == 0:
		w.warn(fmt.Sprintf("%s %s has no template of pods", m.Kind, m.Metadata.Name))
		return nil
	default:
		pod.Metadata.Name = strings.ToLower(m.Kind) + "/" + cmp.Or(m.Metadata.Name, m.Metadata.GenerateName)
		pod.Metadata.OwnerReferences = []optin.Owner{{Kind: m.Kind, Name: m.Metadata.Name}}
	}
	pod.Metadata.Namespace = cmp.Or(m.Metadata.Namespace, w.namespace, w.client.Namespace())
	*pods = append(*pods, pod)
	return nil
}
