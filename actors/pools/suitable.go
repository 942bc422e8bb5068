package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/messages"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// The parameters of a class need something of an array: a portal for iSCSI, a password for encryption, a license. What no
// request tells, the array says when it refuses a volume. The condition Suitable has both. A refused volume goes to
// another pool of the class, and so do those like it for a while, if another one takes them.

// wantsOfClass asks what a class wants of its pools. Pool -> classes.
type wantsOfClass struct {
	class string
	messages.Reply[classWants]
}

// classWants is what a class wants of its pools. It can be compared.
type classWants struct {
	// strict: limits have to hold against every pod.
	strict bool
	// needs are those of a volume with a file system.
	needs pools.Needs
}

// wants returns what a class wants; nothing, where there is no such class.
func (k *classes) wants(name string) (w classWants) {
	if c := k.classes[name]; c != nil {
		w.strict = c.object.Spec.Enforcement == v1alpha1.Strict
		w.needs = needsOf(c.object, &poolmessages.ReservePool{})
	}
	return w
}

// wantsOf asks what the class of a pool wants of it.
func wantsOf(ctx context.Context, e *environment, p *v1alpha1.Pool) (w classWants, known bool) {
	w, err := actors.Ask(ctx, e.Root, e.Single(classesName), &wantsOfClass{class: p.Spec.ClassName})
	return w, err == nil
}

// needsOf returns what a new volume of a class needs of an array.
func needsOf(c *v1alpha1.PoolClass, m *poolmessages.ReservePool) pools.Needs {
	protocol := cmp.Or(m.Protocol, pools.Protocol(c.Spec.Protocol), pools.NFS)
	if m.Block {
		protocol = pools.ISCSI
	}
	flags := c.Spec.VolumeFlags
	return pools.Needs{
		Protocol: protocol, Compress: flags.Compress, Dedupe: flags.Dedupe, Encrypt: flags.Encrypt,
		Options: pools.OptionsText(flags.Extra, m.Options),
	}
}

// needsOfVolume returns what a volume needs of its array.
func needsOfVolume(v *v1alpha1.PoolVolume) pools.Needs {
	flags := v.Spec.Flags
	return pools.Needs{
		Protocol: pools.Protocol(v.Spec.Protocol), Compress: flags.Compress, Dedupe: flags.Dedupe, Encrypt: flags.Encrypt,
		Options: pools.OptionsText(flags.Extra),
	}
}

// decline is why an array has refused a volume, and when it did so last.
type decline struct {
	why string
	at  time.Time
}

const (
	// declinedFor is how long volumes like one that an array has refused go to other pools.
	declinedFor = 5 * time.Minute
	// mostDeclines bounds what is kept of an array's refusals: StorageClasses have options of all sorts.
	mostDeclines = 16
)

// shortly is what an array has said, for a condition. Its text may be long.
func shortly(err error) string {
	if p, ok := errors.AsType[*problem](err); ok && p.cause != nil {
		err = p.cause
	}
	return fmt.Sprintf("%.300s", volume.OneLine(err))
}

// took tells the pool what its array has made of a request for a volume.
func (t *task) took(ctx context.Context, v *v1alpha1.PoolVolume, err error) {
	m := &poolmessages.PoolTook{Routing: routing(ctx, kindPool, v.Spec.PoolName), Needs: needsOfVolume(v)}
	switch {
	case kindOfVolume(v) == pools.KindLocal, err != nil && (isOpen(err) || !errors.Is(err, array.ErrDeclined)):
		return
	case err != nil:
		m.Declined = shortly(err)
	}
	m.Prepare()
	t.Root.Send(t.Supervisor(), m)
}

// took takes over what the array has made of a request.
func (p *poolActor) took(m *poolmessages.PoolTook) {
	before, known := p.declines[m.Needs]
	if m.Declined == "" {
		p.encrypts = p.encrypts || m.Needs.Encrypt
		if known {
			p.declines = maps.Clone(p.declines) // the classes may read it
			delete(p.declines, m.Needs)
		}
	} else {
		p.declined(m.Needs, decline{why: m.Declined, at: time.Now()})
		if before.why != m.Declined && p.object != nil {
			p.Resources.Events.Event(p.object, corev1.EventTypeWarning, "VolumeRefused", refusedText(m.Needs, m.Declined))
		}
	}
	p.judge()
}

// declined notes what the array has refused, in place of the oldest if that is too much.
func (p *poolActor) declined(needs pools.Needs, d decline) {
	all := map[pools.Needs]decline{needs: d}
	for other, before := range p.declines {
		if other != needs {
			all[other] = before
		}
	}
	if len(all) > mostDeclines {
		delete(all, slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b pools.Needs) int { return all[a].at.Compare(all[b].at) }))
	}
	p.declines = all
}

func refusedText(needs pools.Needs, why string) string {
	return fmt.Sprintf("the array refuses volumes with %s: %s", needs, why)
}

// wanted takes over what the class wants of the pool. What was refused of an earlier one says nothing.
func (p *poolActor) wanted(found probe) {
	if found.known && found.wants != p.classWants {
		p.classWants, p.declines = found.wants, nil
	}
	p.judge()
}

// judge decides whether the pool has what its class needs.
func (p *poolActor) judge() {
	before := p.suitable
	p.suitable = p.suits()
	p.dirty = p.dirty || p.suitable != before
}

func (p *poolActor) suits() verdict {
	needs, class := p.classWants.needs, ""
	if p.object != nil {
		class = p.object.Spec.ClassName
	}
	switch {
	case p.last.client == nil:
		return verdict{} // it is not known yet
	case p.object.Spec.Local != nil:
		return good("Suitable")
	case needs.Protocol == pools.ISCSI && !p.hasISCSI():
		return bad("NoISCSI", "PoolClass "+class+
			" has the protocol iscsi, and the array says no target or no portal for that; see its network there")
	case len(p.declines) > 0:
		var all []string
		for needs, d := range p.declines {
			all = append(all, refusedText(needs, d.why))
		}
		slices.Sort(all)
		return bad("VolumeRefused", fmt.Sprintf("%s; such volumes go to other pools, and every %s one is tried here",
			strings.Join(all[:min(len(all), 3)], "; "), declinedFor))
	case needs.Encrypt && !p.encrypts:
		return verdict{metav1.ConditionUnknown, "EncryptionNotSeen", "PoolClass " + class + " encrypts volumes, and the array has none that is " +
			"encrypted: if it has no password for that yet, set one there"}
	}
	return good("Suitable")
}

func (p *poolActor) hasISCSI() bool { return p.last.health.IQN != "" && p.last.health.Portal != "" }

// abilities are what a pool lacks for some volumes.
type abilities struct {
	noISCSI  bool
	declines map[pools.Needs]decline
}

func (p *poolActor) abilities() abilities {
	return abilities{noISCSI: p.last.client != nil && !p.hasISCSI(), declines: p.declines}
}

// lacks says why a pool on an array is passed over for a volume; empty if it is not. A copy needs what its source has.
// declining: it is not for what its array has refused.
func lacks(f *poolIs, c *v1alpha1.PoolClass, m *poolmessages.ReservePool, declining bool) string {
	if m.Growth || m.Copy {
		return ""
	}
	needs := needsOf(c, m)
	if needs.Protocol == pools.ISCSI && f.needs.noISCSI {
		return "it says no target or no portal for iscsi"
	}
	if d, ok := f.needs.declines[needs]; ok && !declining && time.Since(d.at) < declinedFor {
		return "it refuses such a volume: " + d.why
	}
	return ""
}
