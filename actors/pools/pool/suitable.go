package pool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/actors/pools/rules"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// wantsOf asks what the class of a pool wants of it.
func wantsOf(ctx context.Context, e *env.Environment, p *v1alpha1.Pool) (w poolmessages.ClassWants, known bool) {
	w, err := actors.Ask(ctx, e.Root, e.Single(poolmessages.ClassesName), &poolmessages.WantsOfClass{Class: p.Spec.ClassName})
	return w, err == nil
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
		p.declined(m.Needs, poolmessages.Decline{Why: m.Declined, At: time.Now()})
		if before.Why != m.Declined && p.object != nil {
			p.Resources.Events.Event(p.object, corev1.EventTypeWarning, "VolumeRefused", rules.RefusedText(m.Needs, m.Declined))
		}
	}
	p.judge()
}

// declined notes what the array has refused, in place of the oldest if that is too much.
func (p *poolActor) declined(needs pools.Needs, d poolmessages.Decline) {
	all := map[pools.Needs]poolmessages.Decline{needs: d}
	for other, before := range p.declines {
		if other != needs {
			all[other] = before
		}
	}
	if len(all) > rules.MostDeclines {
		delete(all, slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b pools.Needs) int { return all[a].At.Compare(all[b].At) }))
	}
	p.declines = all
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
	needs, class := p.classWants.Needs, ""
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
			all = append(all, rules.RefusedText(needs, d.Why))
		}
		slices.Sort(all)
		return bad("VolumeRefused", fmt.Sprintf("%s; such volumes go to other pools, and every %s one is tried here",
			strings.Join(all[:min(len(all), 3)], "; "), rules.DeclinedFor))
	case needs.Encrypt && !p.encrypts:
		return verdict{metav1.ConditionUnknown, "EncryptionNotSeen", "PoolClass " + class + " encrypts volumes, and the array has none that is " +
			"encrypted: if it has no password for that yet, set one there"}
	}
	return good("Suitable")
}

func (p *poolActor) hasISCSI() bool { return p.last.health.IQN != "" && p.last.health.Portal != "" }

func (p *poolActor) abilities() poolmessages.Abilities {
	return poolmessages.Abilities{NoISCSI: p.last.client != nil && !p.hasISCSI(), Declines: p.declines}
}
