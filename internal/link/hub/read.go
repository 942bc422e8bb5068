package hub

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/katbox/katbox/internal/lib/logkeys"
)

// Tokens reads tokens that the cluster has signed.
type Tokens interface {
	// Read returns what a valid token says; no field is empty. An error is no refusal.
	Read(ctx context.Context, token string) (Identity, error)
}

// believed is how old what a token is compared with may be: the pods of the watch, and the UID of the ServiceAccount. A
// TokenReview would refuse the token of a pod or a ServiceAccount that was deleted.
const believed = time.Minute

// listing is how long after a start nodes are told to come again while the pods are being listed; from then on there is a
// TokenReview for each.
const listing = 30 * time.Second

// lists reports whether the pods are still being listed, as after a start, and may soon be known.
func (r *Registry) lists() bool {
	if r.Tokens == nil || r.Known == nil || time.Since(r.started) >= listing {
		return false
	}
	select {
	case <-r.Known:
		return false
	default:
		return true
	}
}

// read returns whose a token is, if the cluster's keys and the watch of the daemons' pods say so. For all that is not clear
// there is a TokenReview; nothing is refused here.
func (r *Registry) read(ctx context.Context, token string) (who Identity, clear bool) {
	if r.Tokens == nil {
		return Identity{}, false
	}
	who, err := r.Tokens.Read(ctx, token)
	if err != nil {
		r.Log.V(1).Info("a token is reviewed", logkeys.Cause, err.Error())
		return Identity{}, false
	}
	if r.Known != nil {
		// After a start all nodes come back, and the pods are being listed: 20,000 take a few seconds.
		waiting, cancel := context.WithTimeout(ctx, r.limits.wait/2)
		defer cancel()
		select {
		case <-r.Known:
		case <-waiting.Done():
		}
	}
	if who.Namespace != r.Namespace || who.ServiceAccount != r.ServiceAccount || !r.runs(who) {
		r.Log.V(1).Info("a token is reviewed", logkeys.Pod, who.Pod, logkeys.PodUID, who.PodUID, logkeys.Node, who.Node,
			logkeys.Cause, "it is not that of a daemon's pod that the watch shows on this node, or the watch is old")
		return Identity{}, false
	}
	return who, true
}

// runs reports whether the watch shows that the pod of a token runs on the token's node, and is not old.
func (r *Registry) runs(who Identity) bool {
	pod, known := r.Expected.Pod(who.PodUID)
	return known && pod.Name == who.Pod && pod.UID == who.PodUID && pod.Node == who.Node && !pod.Ended && !pod.Leaving &&
		time.Since(pod.Heard) < believed
}

// renewed is the age from which on the ServiceAccount is confirmed anew while it is still believed, so that no one waits for that.
const renewed = 40 * time.Second

// accountsPerSecond bounds TokenReviews that are to confirm the ServiceAccount.
const accountsPerSecond = 10

// account is the UID of the daemons' ServiceAccount, as TokenReviews have confirmed it. Once in a while a token that is clear is
// reviewed for this, while the others of the ServiceAccount wait. So the API server also sees now and then what its keys let in.
type account struct {
	// turn is taken by the request whose token is reviewed for all. reviews bounds that where it fails: the token is one that the
	// cluster has signed, so those that are not do not hold it up.
	turn    chan struct{}
	reviews *rate.Limiter

	mu  sync.Mutex
	uid string
	at  time.Time
}

// enter reports whether the UID was confirmed. If not, the caller lets a TokenReview confirm it, and then calls leave.
func (a *account) enter(ctx context.Context, uid string) (leave func(), confirmed bool) {
	if a.is(uid) {
		return nil, true
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return func() {}, false
	}
	if a.is(uid) {
		<-a.turn
		return nil, true
	}
	return func() { <-a.turn }, false
}

// renew lets a TokenReview of the token confirm the ServiceAccount anew, if it is time and no other one does. It does not wait.
func (r *Registry) renew(token string) {
	a := &r.account
	if !a.ages() || !a.reviews.Allow() {
		return
	}
	select {
	case a.turn <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-a.turn }()
		if a.ages() {
			_, _ = r.ask(r.ctx, token) // whatever comes of it, the token was accepted by the keys
		}
	}()
}

// ages reports whether the UID should be confirmed anew.
func (a *account) ages() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.at) >= renewed
}

func (a *account) is(uid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.uid == uid && uid != "" && time.Since(a.at) < believed
}

// confirm notes what a TokenReview that began at that time has said.
func (a *account) confirm(uid string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.After(a.at) {
		a.uid, a.at = uid, at
	}
}
