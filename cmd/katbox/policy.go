package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/lib/logkeys"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/metrics"
	"github.com/katbox/katbox/internal/node/policy"
)

// policyInterval is the time between two looks at the policy file. The kubelet itself takes a minute to
// bring a ConfigMap to the node.
const policyInterval = 5 * time.Second

// bounds are what the flags promise to volumes; check has seen that they are good.
func (o options) bounds() policy.Bounds {
	limit := func(text string) int64 {
		n, _ := policy.ParseQuantity(text)
		return n
	}
	perOwner, _ := volume.ParsePerOwner(o.maxPerOwner)
	return policy.Bounds{
		PerOwner: perOwner, Archive: o.archive.policy(), MaxArchive: o.archive.policy(),
		Lifespan: o.afterLifespan, LifespanSucceeded: o.succeeded, MaxLifespan: max(o.afterLifespan, o.maxLifespan),
		Limit:    volume.Size{Bytes: limit(o.sizeLimit), Inodes: limit(o.inodeLimit)},
		MaxLimit: volume.Size{Bytes: limit(o.maxSizeLimit), Inodes: limit(o.maxInodeLimit)},
	}
}

func quantity(text string) error {
	_, err := policy.ParseQuantity(text)
	return err
}

// promises are what volumes are promised: by the flags, and by the policy file as it was when it was
// last good.
type promises struct {
	path    string // "" for no file
	flags   policy.Bounds
	log     logr.Logger
	counted *metrics.Metrics

	good atomic.Pointer[policy.Policy]
	// problem is why the file was never good; it is of interest while good is nil.
	problem atomic.Pointer[error]
	// What the goroutine that reads has read last.
	content []byte
	failure string
}

// readPolicy reads the policy file, and again when it changes. A file that is broken ends nothing: a
// node that runs goes on with the last good one. A daemon that has seen none yet refuses new volumes,
// and is not ready, rather than promise what the administrator does not want; unpublishes go on, and so
// do the volumes that are known.
func (i *instance) readPolicy(ctx context.Context) error {
	i.promises = &promises{path: i.o.policyFile, flags: i.o.bounds(), log: i.log, counted: i.counted}
	if i.o.policyFile == "" {
		all, err := policy.New(i.promises.flags)
		i.promises.good.Store(all)
		return err
	}
	i.promises.read()
	go func() {
		for {
			wait, cancel := context.WithTimeout(ctx, policyInterval)
			<-wait.Done()
			cancel()
			if ctx.Err() != nil {
				return
			}
			i.promises.read()
		}
	}()
	return nil
}

// Terms are what a new volume is promised. Without a good policy the kubelet has to try again.
func (p *promises) Terms(namespace string, attributes map[string]string) (volume.Terms, error) {
	good := p.good.Load()
	if good == nil {
		return volume.Terms{}, p.ready()
	}
	return good.Terms(namespace, attributes)
}

// Cut says which lifespans Terms cuts.
func (p *promises) Cut(namespace string, attributes map[string]string) string {
	if good := p.good.Load(); good != nil {
		return good.Cut(namespace, attributes)
	}
	return ""
}

// maxRetained returns what says how much a namespace may retain; nil if nothing ever does. While the
// policy file was never good all may retain anything.
func (p *promises) maxRetained() func(namespace string) volume.Size {
	if p.path == "" {
		return nil // no flag limits it
	}
	return ofGood(p, (*policy.Policy).MaxRetained)
}

// perOwner returns what says of how many pods of an owner the volumes stay; nil if it is always all. While the policy file
// was never good all stay.
func (p *promises) perOwner() func(namespace string) volume.PerOwner {
	if p.path == "" && p.flags.PerOwner == (volume.PerOwner{}) {
		return nil
	}
	return ofGood(p, (*policy.Policy).PerOwner)
}

// ofGood returns what asks the last good policy about a namespace, and returns the zero value while there was none.
func ofGood[T any](p *promises, about func(*policy.Policy, string) T) func(namespace string) T {
	return func(namespace string) (is T) {
		if good := p.good.Load(); good != nil {
			is = about(good, namespace)
		}
		return is
	}
}

// ready returns why no volume can be promised anything.
func (p *promises) ready() error {
	if p.good.Load() != nil {
		return nil
	}
	return fmt.Errorf("%w: %w; correct the file, and the daemon reads it again", volume.ErrUnavailable, *p.problem.Load())
}

// read takes over the file if it has changed, and reports a file that is broken once.
func (p *promises) read() {
	content, err := readPolicyFile(p.path)
	if err == nil && p.failure == "" && p.good.Load() != nil && bytes.Equal(content, p.content) {
		return
	}
	var next *policy.Policy
	if err == nil {
		next, err = policy.Parse(p.flags, content)
	}
	if err != nil {
		err = fmt.Errorf("--policy-file %s: %w", p.path, err)
		p.problem.Store(&err)
		p.counted.PolicyRead(false)
		if p.failure != err.Error() {
			p.log.Error(err, "the policy file is broken", "lastGoodOneHolds", p.good.Load() != nil)
		}
		p.failure = err.Error()
		return
	}
	if last := p.good.Load(); last != nil {
		next.Prepare(last)
	}
	p.good.Store(next)
	p.content, p.failure = content, ""
	p.counted.PolicyRead(true)
	p.log.Info("policy file read", logkeys.Path, p.path, "bytes", len(content))
}

// readPolicyFile reads no more than a policy file may have. Where the kubelet swaps the symbolic link of
// a ConfigMap meanwhile, it reads one of both versions.
func readPolicyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, policy.MaxFile+1))
}
