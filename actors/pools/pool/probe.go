package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/actors/pools/env"
	"github.com/katbox/katbox/internal/controller/array"
	"github.com/katbox/katbox/internal/model/v1alpha1"
	"github.com/katbox/katbox/internal/model/volume"
	poolmessages "github.com/katbox/katbox/messages/pools"
)

// longestProbe bounds how long a probe waits for an array. A probe is a few short questions.
const longestProbe = 30 * time.Second

// probe is one look at an array: what is asked, and what is found.
type probe struct {
	// object is the Pool, iqn the array's identity if that is known.
	object *v1alpha1.Pool
	iqn    string
	// access and client are those of the last probe that got an answer, and of this one.
	access env.Access
	client array.Array
	began  time.Time
	// err is why the array gives no answer.
	err    error
	health array.Health
	on     array.Pool
	// wants is what the class wants of the pool; known: the classes have said.
	wants      poolmessages.ClassWants
	known      bool
	compatible verdict
	configured verdict
	chapSecret string
	counts     poolmessages.PoolCounts
	counted    bool
}

// probe asks an array how it is, and configures it where that has not been done.
func (p *poolActor) probe(ctx context.Context, asked probe) probe {
	found := asked
	found.began = time.Now()
	ctx, cancel := context.WithTimeout(ctx, longestProbe)
	defer cancel()
	if counts, err := actors.Ask(ctx, p.Root, p.Supervisor(), &poolmessages.CountPool{Name: p.name}); err == nil {
		found.counts, found.counted = counts, true
	}
	access, err := accessOf(ctx, p.Environment, asked.object)
	if err != nil && asked.client != nil && asked.object.Spec.Local == nil && !isRefused(err) {
		access = asked.access // it is the API server that gives no answer
	} else if err != nil {
		found.err = err
		return found
	}
	if asked.client == nil || !access.Same(asked.access) {
		if found.client, found.err = clientOf(p.Environment, access); found.err != nil {
			return found
		}
		found.access = access
	}
	if found.health, found.err = found.client.Health(ctx); found.err != nil {
		return found
	}
	object := asked.object.DeepCopy()
	object.Status.VPSA.IQN = asked.iqn
	found.wants, found.known = wantsOf(ctx, p.Environment, object)
	if found.on, found.compatible = compatible(object, found.health, found.wants.Strict); !found.compatible.ok() {
		return found
	}
	if found.compatible, found.err = found.alone(ctx, p.Environment); found.err != nil || !found.compatible.ok() {
		return found
	}
	found.configure(ctx, p.Environment)
	return found
}

// isRefused reports whether a Secret is not there or has not what it must have, as far as the API server
// says.
func isRefused(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || errors.Is(err, errNoKey)
}

// configure changes those settings of the array that have to be different, and keeps the nodes'
// Secret up to date.
func (f *probe) configure(ctx context.Context, e *env.Environment) {
	name, err := saveCHAP(ctx, e, f.object.Name, f.health.CHAP)
	if err != nil && f.configured.ok() {
		e.Log.Error(err, "what nodes log in with cannot be kept up to date", "pool", f.object.Name)
	} else if err != nil {
		f.configured = bad("SecretNotWritten", volume.OneLine(err))
		return
	}
	f.chapSecret = name
	if f.configured.ok() || f.object.DeletionTimestamp != nil {
		return
	}
	changed, err := f.client.Configure(ctx)
	switch {
	case errors.Is(err, array.ErrUnreachable) && !errors.Is(err, array.ErrUncertain):
		f.err = err
	case err != nil:
		f.configured = bad("ConfigureFailed", volume.OneLine(fmt.Errorf("change the settings of the array: %w", err)))
	default:
		f.configured = good("Configured")
		if len(changed) > 0 {
			e.Resources.Events.Event(f.object, corev1.EventTypeNormal, "Configured", strings.Join(changed, "; "))
		}
	}
}
