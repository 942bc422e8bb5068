// Package podend is what is kept of how a pod has ended, beside its logs: names, images, resources, and what its status says.
// It is an allowlist. Annotations, arguments, environment variables and commands are none of it: they hold secrets, and the
// annotation last-applied-configuration holds the whole spec. Only [DefaultContainer] is kept, where it names a container of the pod.
//
// Its texts come from the creator of the pod and from its containers. [Pod.Encode] bounds it and takes out what drives a
// terminal; [Decode] does the same with what another program has encoded.
package podend

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MostBytes is how long the JSON of a pod may be.
const MostBytes = 64 << 10

const (
	// mostContainers bounds the containers of a pod, mostResources the resources of each, mostName a name, and mostMessage a
	// message; a kubelet cuts those of containers at 4 KiB. leastMessage is how short a message may become.
	mostContainers = 256
	mostResources  = 32
	mostName       = 512
	mostMessage    = 4 << 10
	leastMessage   = 64
)

// DefaultContainer is the annotation that names the container whose logs are meant if none is given.
const DefaultContainer = "kubectl.kubernetes.io/default-container"

// Pod is a pod that has ended. What is not known is left out.
type Pod struct {
	Namespace     string `json:"namespace,omitempty"`
	Name          string `json:"name,omitempty"`
	UID           string `json:"uid,omitempty"`
	Node          string `json:"node,omitempty"`
	RestartPolicy string `json:"restartPolicy,omitempty"`
	// Phase, Reason and Message are those of the pod's status.
	Phase   string `json:"phase,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Disruption is the condition DisruptionTarget, if it is True.
	Disruption *Disruption `json:"disruption,omitempty"`
	Created    time.Time   `json:"created,omitzero"`
	Started    time.Time   `json:"started,omitzero"`
	// Deleted is when it was told to go, its grace included.
	Deleted    time.Time   `json:"deleted,omitzero"`
	Containers []Container `json:"containers,omitempty"`
	// Default is the container that the annotation [DefaultContainer] names; empty if the pod has no such container.
	Default string `json:"defaultContainer,omitempty"`
	// Cut: there were more containers, or longer texts.
	Cut bool `json:"cut,omitempty"`
}

// Disruption is why a pod was disrupted.
type Disruption struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// The kinds of containers; those of the pod itself have none.
const (
	Init      = "init"
	Ephemeral = "ephemeral"
)

// Container is a container of a pod.
type Container struct {
	Name     string            `json:"name"`
	Kind     string            `json:"kind,omitempty"`
	Image    string            `json:"image,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
	// Restarts is how often it was started again.
	Restarts int32 `json:"restarts,omitempty"`
	State
	// Last is how it ended before it was started again.
	Last *State `json:"last,omitempty"`
}

// The states of a container.
const (
	Waiting    = "waiting"
	Running    = "running"
	Terminated = "terminated"
)

// State is what the kubelet last said of a container.
type State struct {
	State string `json:"state,omitempty"`
	// ExitCode is only of one that has terminated, and Signal of one that a signal has ended, if the runtime says so.
	ExitCode *int32    `json:"exitCode,omitempty"`
	Signal   int32     `json:"signal,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}

// Encode returns the pod as JSON of at most [MostBytes], and a newline.
func (p Pod) Encode() []byte {
	p.Containers = slices.Clone(p.Containers)
	for limit := mostMessage; ; limit /= 2 {
		b := bounds{message: limit}
		b.pod(&p)
		text, err := json.Marshal(p)
		if err == nil && len(text) < MostBytes {
			return append(text, '\n')
		}
		if limit <= leastMessage || err != nil { // a time that JSON does not have is the only error
			p = Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Node: p.Node, Phase: p.Phase, Reason: p.Reason,
				Containers: halved(p.Containers), Default: p.Default, Cut: true}
		}
	}
}

// halved leaves the containers that have failed, and of these the first ones.
func halved(all []Container) []Container {
	slices.SortStableFunc(all, func(a, b Container) int { return failed(b) - failed(a) })
	for i := range all {
		all[i].Started, all[i].Finished, all[i].Last = time.Time{}, time.Time{}, nil
	}
	return all[:len(all)/2]
}

func failed(c Container) int {
	if c.ExitCode != nil && *c.ExitCode != 0 {
		return 1
	}
	return 0
}

var errLong = fmt.Errorf("it is longer than %d bytes", MostBytes)

// Decode reads what [Pod.Encode] has written, or says it has.
func Decode(text []byte) (p Pod, err error) {
	if len(text) > MostBytes {
		return Pod{}, errLong
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return Pod{}, errors.New("it is not how a pod has ended: " + clean(err.Error(), mostName))
	}
	b := bounds{message: mostMessage}
	b.pod(&p)
	return p, nil
}

// bounds cuts texts, and notes that it did.
type bounds struct {
	message int
	cut     bool
}

func (b *bounds) pod(p *Pod) {
	for _, name := range []*string{&p.Namespace, &p.Name, &p.UID, &p.Node, &p.RestartPolicy, &p.Phase, &p.Reason} {
		b.text(name, mostName)
	}
	b.text(&p.Message, b.message)
	p.Created, p.Started, p.Deleted = p.Created.UTC(), p.Started.UTC(), p.Deleted.UTC()
	if p.Disruption != nil {
		d := *p.Disruption
		b.text(&d.Reason, mostName)
		b.text(&d.Message, b.message)
		p.Disruption = &d
	}
	if len(p.Containers) > mostContainers {
		p.Containers, b.cut = p.Containers[:mostContainers], true
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		for _, name := range []*string{&c.Name, &c.Kind, &c.Image} {
			b.text(name, mostName)
		}
		c.Requests, c.Limits = b.resources(c.Requests), b.resources(c.Limits)
		b.state(&c.State)
		if c.Last != nil {
			last := *c.Last
			b.state(&last)
			c.Last = &last
		}
	}
	if !slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Name == p.Default }) {
		p.Default = ""
	}
	p.Cut = p.Cut || b.cut
}

func (b *bounds) state(s *State) {
	b.text(&s.State, mostName)
	b.text(&s.Reason, mostName)
	b.text(&s.Message, b.message)
	s.Started, s.Finished = s.Started.UTC(), s.Finished.UTC()
}

func (b *bounds) resources(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	kept := make(map[string]string, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		amount := all[name]
		b.text(&name, mostName)
		b.text(&amount, mostName)
		if len(kept) == mostResources {
			b.cut = true
			break
		}
		kept[name] = amount
	}
	return kept
}

func (b *bounds) text(text *string, most int) {
	b.cut = b.cut || len(*text) > most
	*text = clean(*text, most)
}

// clean returns the beginning of a text, in which lines and tabs stay, and nothing drives a terminal.
func clean(text string, most int) string {
	if len(text) > most {
		text = text[:most]
		for cut := 1; cut < utf8.UTFMax && cut < most && !utf8.ValidString(text[most-cut:]); cut++ {
			if utf8.RuneStart(text[most-cut]) {
				text = text[:most-cut]
				break
			}
		}
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}
