package arrays

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/lib/retry"
	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/iscsi"
	"github.com/katbox/katbox/messages"
)

// users are the volumes that need a session, and how they are reached.
type users map[string]pools.Attachment

// any returns the attachment of one of them, always the same one.
func (u users) any() (pools.Attachment, bool) {
	if len(u) == 0 {
		return pools.Attachment{}, false
	}
	return u[slices.Min(slices.Collect(maps.Keys(u)))], true
}

// session is the session to a target. It is there as long as a volume needs it; what they do with their own
// LUNs does not go through it.
type session struct {
	*environment
	actors.Simple
	target string
	users  users
	// up: it carries I/O, as was seen last; seen: it was looked at.
	up, seen bool
	// failures counts the attempts in a row to mend it; the next one comes at retry.
	failures int
	retry    time.Time
}

// mendBackoff is for sessions that cannot be mended: each attempt asks the API server and the array.
var mendBackoff = retry.Backoff{First: 10 * time.Second, Longest: 5 * time.Minute, Jitter: 0.1}

// loginLimit bounds a login, so that a logout need not wait longer.
const loginLimit = time.Minute

// Take notes which volumes need the session. An unstaged volume needs it no more, whatever comes of the logout.
func (s *session) Take(m messages.Request) {
	switch m := m.(type) {
	case *messages.UseSession:
		s.users[m.Attachment.Volume] = m.Attachment
	case *messages.ReleaseSession:
		delete(s.users, m.Volume)
	}
}

// Stays: the session is watched while it is needed.
func (s *session) Stays() bool {
	s.figures.session(s.target, len(s.users) > 0, s.up)
	return len(s.users) > 0
}

// Plan returns the operation that a request asks for.
func (s *session) Plan(m messages.Request) *actors.Operation {
	switch m := m.(type) {
	case *messages.UseSession:
		op := actors.Change("login", m, actors.Always, func(ctx context.Context) error { return s.login(ctx, m.Attachment) })
		op.Behind = others
		op.Then = s.saw
		return op
	case *messages.ReleaseSession:
		last := len(s.users) == 0
		same := func(o *messages.ReleaseSession) bool { return o.Volume == m.Volume }
		op := actors.Change("logout", m, same, func(ctx context.Context) error {
			if !last {
				return nil
			}
			return s.logout(ctx)
		})
		op.Behind = others
		return op
	}
	return nil
}

// others wait for their turn.
func others(messages.Request) bool { return true }

// Rest returns the operation that looks after the session, and mends it.
func (s *session) Rest() *actors.Operation {
	a, ok := s.users.any()
	if !ok {
		return nil
	}
	mend := !time.Now().Before(s.retry)
	return &actors.Operation{
		Name: "look", Behind: others,
		Run: func(ctx context.Context) actors.Outcome {
			err := s.look(ctx, a, mend)
			if err != nil {
				s.Log.V(1).Info("session does not carry I/O", "iscsiTarget", s.target, "reason", volume.OneLine(err))
			}
			// It is not unfinished: the watch looks again.
			return actors.Outcome{Err: err}
		},
		Then: func(e *actors.Outcome) {
			switch {
			case e.NotBegun:
			case e.Err == nil:
				s.failures, s.retry = 0, time.Time{}
			case mend:
				s.failures++
				s.retry = time.Now().Add(mendBackoff.After(s.failures))
			}
			s.saw(e)
		},
	}
}

// look returns an error if the session does not carry I/O. mend: it tries to make it so.
func (s *session) look(ctx context.Context, a pools.Attachment, mend bool) error {
	if mend {
		return s.login(ctx, a)
	}
	now, ok, err := s.Initiator.Session(ctx, s.target)
	if err == nil && (!ok || !now.LoggedIn) {
		err = problemf(volume.ErrUnavailable, "the session to %s is lost or down", s.target)
	}
	return err
}

// saw takes over whether the session carries I/O, and reports a change.
func (s *session) saw(e *actors.Outcome) {
	if e.NotBegun {
		return
	}
	up := e.Err == nil
	changed := s.up != up || !s.seen
	s.up, s.seen = up, true
	if !changed {
		return
	}
	s.Log.Info("iSCSI session", "iscsiTarget", s.target, "carriesIO", up, "volumes", len(s.users))
	for id := range s.users {
		s.report(id, up)
	}
}

// login makes sure that there is a session that carries I/O.
func (s *session) login(ctx context.Context, a pools.Attachment) error {
	now, ok, err := s.Initiator.Session(ctx, s.target)
	switch {
	case err != nil:
		return because(volume.ErrUnavailable, err, "look for the session to %s", s.target)
	case ok && now.LoggedIn:
		return nil
	case ok:
		return s.follow(ctx, a, now)
	}
	err = s.loginAt(ctx, a, a.Portal)
	if err == nil {
		return nil
	}
	portal, changed := s.moved(ctx, a, a.Portal)
	if !changed {
		return err
	}
	return s.loginAt(ctx, a, portal)
}

// follow logs in again for a session that is down. open-iscsi connects it again by itself, but neither where the
// array is by now, nor with a secret that has changed since.
func (s *session) follow(ctx context.Context, a pools.Attachment, now iscsi.Session) error {
	portal, changed := s.moved(ctx, a, now.Address)
	if !changed {
		portal = cmp.Or(now.Address, a.Portal)
	}
	err := s.loginAt(ctx, a, portal)
	if err == nil {
		if again, ok, err := s.Initiator.Session(ctx, s.target); err == nil && ok && again.LoggedIn {
			return nil
		}
	}
	return because(volume.ErrUnavailable, err, "the array at %s (target %s) has not answered since %s", now.Address, s.target,
		now.Since.Format(timeFormat))
}

// moved returns where the target is, if that is elsewhere.
func (s *session) moved(ctx context.Context, a pools.Attachment, from string) (string, bool) {
	now, err := s.Cluster.Where(ctx, pools.AttachmentName(a.Volume, s.NodeName))
	if err != nil || now.Target != s.target || now.Address == "" {
		return "", false
	}
	return now.Address, withPort(now.Address) != withPort(from)
}

// withPort returns an address with iSCSI's port where it has none.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	const port = "3260"
	return net.JoinHostPort(address, port)
}

// loginAt logs in. The secret is read for each login, since it may have changed.
func (s *session) loginAt(ctx context.Context, a pools.Attachment, address string) error {
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	var chap iscsi.CHAP
	if a.CHAPSecret != "" {
		var err error
		if chap.User, chap.Secret, err = s.Cluster.CHAP(ctx, a.CHAPSecret); err != nil {
			return because(volume.ErrUnavailable, err, "log in to %s: read the Secret %s", s.target, a.CHAPSecret)
		}
	}
	if err := s.Initiator.Login(ctx, iscsi.Portal{Target: s.target, Address: address}, chap); err != nil {
		return because(volume.ErrUnavailable, err, "log in to %s at %s", s.target, address)
	}
	return nil
}

// logout ends the session after the last volume. A device that is left is not one of ours to remove, such as
// that of a volume which an older daemon has staged; the session stays for it.
func (s *session) logout(ctx context.Context) error {
	devices, err := s.Initiator.Devices(ctx, s.target)
	if err != nil {
		return because(volume.ErrUncertain, err, "look for the devices of target %s", s.target)
	}
	if len(devices) > 0 {
		s.Log.Info("session stays, it has disks of other volumes", "iscsiTarget", s.target, "device", devices[0].Name)
		return nil
	}
	err = s.Initiator.Logout(ctx, s.target)
	if err == nil {
		err = s.Initiator.Forget(ctx, s.target)
	}
	if err != nil {
		return because(volume.ErrUnavailable, err, "log out of %s", s.target)
	}
	return nil
}
