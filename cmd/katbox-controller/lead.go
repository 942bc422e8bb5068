package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

// errLost ends the controller at once: another one may be serving already.
var errLost = errors.New("the lease is lost; another replica serves, or the API server could not be reached in time")

// releaseTime bounds the release of the lease.
const releaseTime = 2 * time.Second

// leadership is a lease that is waited for, and then held.
type leadership struct {
	// won is closed once this replica leads; lost once it does not any more, or never will.
	won, lost chan struct{}
	cancel    context.CancelFunc
	lock      resourcelock.Interface
	log       logr.Logger
}

// campaign waits for the lease in the background, and then holds it until release.
func campaign(o options, c clients, log logr.Logger) (*leadership, error) {
	l := &leadership{won: make(chan struct{}), lost: make(chan struct{}), log: log, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: o.leaseNamespace, Name: o.lease},
		Client:     c.leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: o.identity},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l.lock, Name: o.lease,
		LeaseDuration: o.leaseDuration, RenewDeadline: o.renewDeadline, RetryPeriod: o.retryPeriod,
		// It would try to release a lease that it could not renew, and report the loss only then.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(l.won) },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				log.Info("leader", "identity", identity, "this", identity == o.identity)
			},
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	go func() {
		defer close(l.lost)
		elector.Run(ctx)
	}()
	return l, nil
}

// release gives the lease up, if it is held, so that another replica need not wait for its end. Nothing
// that needs the lease may run any more.
func (l *leadership) release() {
	l.cancel()
	<-l.lost
	select {
	case <-l.won:
	default:
		return // it was never held
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	record, _, err := l.lock.Get(ctx)
	if err == nil && record.HolderIdentity == l.lock.Identity() {
		now := metav1.Now()
		err = l.lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	}
	if err != nil {
		l.log.Info("the lease is not released, another replica has to wait for its end", logkeys.Cause, err.Error())
	}
}
