package kubelet

import (
	"context"
	"errors"
	"sync"
	"time"
)

var errNotAttached = errors.New("the volume is not attached")

// AttachmentsConfig is what [Attachments] need. All fields must be set but the
// Timing's.
type AttachmentsConfig struct {
	// Socket is the path of the driver's identity and controller services.
	Socket   string
	API      *API
	Listener Listener
	Timing   Timing
}

// Attachments play the attach-detach controller and the external-attacher: they
// attach the persistent volumes that running pods want, and detach those that
// no pod wants and no kubelet uses. Like those they run elsewhere, so that they
// outlive the kubelet's crashes. For a driver whose controller service does not
// offer PUBLISH_UNPUBLISH_VOLUME, and one without any, they do nothing, and
// volumes need not be attached.
type Attachments struct {
	api    *API
	client client
	timing Timing
	stop   context.CancelFunc
	dead   <-chan struct{}
	group  sync.WaitGroup
	owner  chan func()

	// pending belongs to the goroutine that takes from owner.
	pending *pending
}

// StartAttachments starts them. Until the driver said whether it wants volumes
// attached, persistent volumes wait.
func StartAttachments(cfg AttachmentsConfig) (*Attachments, error) {
	if cfg.Socket == "" || cfg.API == nil || cfg.Listener == nil {
		return nil, errors.New("start attachments: AttachmentsConfig.Socket, API or Listener is missing")
	}
	timing := cfg.Timing.orReal()
	ctx, cancel := context.WithCancel(context.Background())
	a := &Attachments{
		api:     cfg.API,
		client:  client{socket: cfg.Socket, timeout: timing.CallTimeout, listener: cfg.Listener},
		timing:  timing,
		stop:    cancel,
		dead:    ctx.Done(),
		owner:   make(chan func()),
		pending: newPending(timing),
	}
	a.api.requireAttach(true)
	a.group.Go(func() { a.run(ctx) })
	return a, nil
}

// Stop gives up all calls and returns when no goroutine is left. What is attached
// stays so.
func (a *Attachments) Stop() {
	a.stop()
	a.group.Wait()
}

func (a *Attachments) run(ctx context.Context) {
	offers := false
	err := persist(ctx, a.timing, nil, func() (err error) {
		offers, err = a.client.offersAttach(ctx)
		return err
	})
	if err != nil {
		return
	}
	if !offers {
		a.api.requireAttach(false)
		return
	}
	ticker := time.NewTicker(a.timing.Period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-a.owner:
			do()
		case now := <-ticker.C:
			a.pass(ctx, now)
		}
	}
}

// pass compares what is wanted with what is attached, once.
func (a *Attachments) pass(ctx context.Context, now time.Time) {
	nodeID := a.api.registered()
	if nodeID == "" {
		return
	}
	for _, one := range a.api.toAttach() {
		a.start(now, one, "attach", func() error { return a.attach(ctx, one.volume, nodeID) })
	}
	for _, one := range a.api.toDetach() {
		a.start(now, one, "detach", func() error { return a.detach(ctx, one, nodeID) })
	}
}

func (a *Attachments) start(now time.Time, one attachment, name string, do func() error) {
	about := key{volume: one.volume.Plan.ID}
	if !a.pending.begin(about, name, now) {
		return
	}
	a.group.Go(func() {
		err := do()
		select {
		case a.owner <- func() { a.pending.end(about, err != nil, time.Now()) }:
		case <-a.dead:
		}
	})
}

func (a *Attachments) attach(ctx context.Context, v *Volume, nodeID string) error {
	a.api.attaching(v.Plan.ID)
	publishContext, err := a.client.controllerPublish(ctx, v, nodeID)
	if err != nil {
		return err
	}
	a.api.markAttached(v.Plan.ID, publishContext)
	return nil
}

func (a *Attachments) detach(ctx context.Context, one attachment, nodeID string) error {
	if one.tried {
		if err := a.client.controllerUnpublish(ctx, one.volume, nodeID); err != nil {
			return err
		}
	}
	a.api.markDetached(one.volume.Plan.ID)
	return nil
}
