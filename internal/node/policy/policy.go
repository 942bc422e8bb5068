package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
)

// Policy is what the volumes of each namespace are promised. It does not change, so any goroutine may
// ask it.
type Policy struct {
	flags   Bounds
	entries []entry
	matches matches
}

// entry has the bounds of some namespaces.
type entry struct {
	match  []pattern
	bounds Bounds
}

// New returns a policy with the same bounds for all namespaces.
func New(all Bounds) (*Policy, error) {
	if err := all.Check(); err != nil {
		return nil, err
	}
	return &Policy{flags: all}, nil
}

// Terms are what a volume of the namespace is promised that has these attributes; keys of the kubelet
// are left alone. The error is a [volume.InvalidError], whose field is volumeAttributes["KEY"].
func (p *Policy) Terms(namespace string, attributes map[string]string) (volume.Terms, error) {
	asked, err := read(attributes)
	if err != nil {
		return volume.Terms{}, err
	}
	return p.Bounds(namespace).terms(asked)
}

// Cut says which attributes ask for more than Terms gives them, and what they are cut to, in a few words; empty if none
// does. For the volume of a person those are lifespans and what is archived, as all else that is too much is refused. Where
// nothing is archived at all there is nothing to say about it.
func (p *Policy) Cut(namespace string, attributes map[string]string) string {
	asked, err := read(attributes)
	if err != nil {
		return ""
	}
	terms, err := p.Bounds(namespace).terms(asked)
	if err != nil {
		return ""
	}
	var cut []string
	for _, l := range []struct {
		key       string
		asked, is time.Duration
	}{{"lifespan", asked.lifespan, terms.Lifespan}, {"lifespanSucceeded", asked.lifespanSucceeded, terms.LifespanSucceeded}} {
		if l.asked > l.is {
			cut = append(cut, fmt.Sprintf("%s from %s to %s", l.key, duration.Format(l.asked), duration.Format(l.is)))
		}
	}
	if asked.limit.Bytes > terms.Limit.Bytes {
		cut = append(cut, fmt.Sprintf("sizeLimit from %s to %s", bytes(asked.limit.Bytes), bytes(terms.Limit.Bytes)))
	}
	if asked.limit.Inodes > terms.Limit.Inodes {
		cut = append(cut, fmt.Sprintf("inodeLimit from %d to %d", asked.limit.Inodes, terms.Limit.Inodes))
	}
	if asked.retain != nil && *asked.retain != terms.Retain {
		cut = append(cut, fmt.Sprintf("retain from %s to %s", *asked.retain, terms.Retain))
	}
	if asked.archive != nil && *asked.archive != terms.Archive && p.flags.MaxArchive != volume.ArchiveNever {
		cut = append(cut, fmt.Sprintf("archive from %s to %s", *asked.archive, terms.Archive))
	}
	return strings.Join(cut, ", ")
}

// MaxRetained is how much the retained volumes of a namespace may take on this node; zero bytes or
// inodes is any amount.
func (p *Policy) MaxRetained(namespace string) volume.Size { return p.Bounds(namespace).MaxRetained }

// PerOwner is of how many pods of an owner the retained volumes of a namespace stay on this node.
func (p *Policy) PerOwner(namespace string) volume.PerOwner { return p.Bounds(namespace).PerOwner }

// Attach returns the retained volume that is to be mounted in place of a new one; the zero Place for
// none. readOnly says whether the pod mounts it read-only, which it has to. The error is a
// [volume.InvalidError]. It needs no policy: that may have changed since a volume was attached.
func Attach(attributes map[string]string, readOnly bool) (volume.Place, error) {
	value, ok := attributes[api.KeyAttach]
	if !ok {
		return volume.Place{}, nil
	}
	if _, err := read(map[string]string{api.KeyAttach: value}); err != nil {
		return volume.Place{}, err
	}
	pod, name, _ := strings.Cut(value, "/")
	switch {
	case !readOnly:
		return volume.Place{}, invalid(api.KeyAttach, "needs readOnly: true beside the driver in the pod's volume")
	}
	return volume.Place{Pod: volume.PodUID(pod), ID: volume.KubeletID(volume.PodUID(pod), name)}, nil
}
