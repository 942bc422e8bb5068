package iscsi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"github.com/katbox/katbox/internal/lib/kernel"
)

// Session returns our session to a target, and whether there is one. Of several it returns one that
// is logged in, else the newest. It asks the kernel alone.
func (i *Initiator) Session(ctx context.Context, target string) (Session, bool, error) {
	all, err := i.to(ctx, target)
	s, ok := best(all)
	return s, ok && err == nil, err
}

// best returns the newest session that is logged in, else the newest, and whether there is one.
func best(all []Session) (s Session, ok bool) {
	for n, other := range all {
		if n == 0 || other.LoggedIn && !s.LoggedIn || other.LoggedIn == s.LoggedIn && other.ID > s.ID {
			s = other
		}
	}
	return s, len(all) > 0
}

// Sessions returns all sessions of ours, those of an earlier process too. It asks the kernel alone.
func (i *Initiator) Sessions(ctx context.Context) ([]Session, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	names, err := entries(i.class("iscsi_session"))
	if err != nil {
		return nil, fmt.Errorf("which iSCSI sessions there are: %w", err)
	}
	var ours []Session
	for _, name := range names {
		s, err := i.session(name)
		switch {
		case gone(err) || errors.Is(err, errStranger):
		case err != nil:
			return nil, fmt.Errorf("iSCSI session %.60q: %w", name, err)
		default:
			ours = append(ours, s)
		}
	}
	i.remember(names, ours)
	return ours, nil
}

func (i *Initiator) to(ctx context.Context, target string) ([]Session, error) {
	all, err := i.Sessions(ctx)
	return slices.DeleteFunc(all, func(s Session) bool { return s.Target != target }), err
}

var errStranger = errors.New("the session is not ours")

// session reads a session, which is named session and its number. [errStranger] is one of another
// interface. Of one that carries I/O, as it did before, it reads nothing but that: what else there is to a
// session does not change while it does.
func (i *Initiator) session(name string) (Session, error) {
	dir := i.class("iscsi_session", name)
	// The kernel gives each object of sysfs a number of its own.
	st, err := kernel.Stat(dir)
	if err != nil {
		return Session{}, err
	}
	if before, known := i.known(name, st.Ino); known {
		up, err := isLoggedIn(dir)
		if up || err != nil {
			return before.Session, err
		}
	}
	s, err := i.readSession(dir, name)
	i.learn(name, seen{st.Ino, s}, err == nil && s.LoggedIn)
	return s, err
}

// isLoggedIn reports whether a session carries I/O.
func isLoggedIn(dir string) (bool, error) {
	state, err := attribute(dir, "state")
	return state == "LOGGED_IN", err
}

// seen is what was read of a session before.
type seen struct {
	inode uint64
	Session
}

// known returns what was read of the session before, if it is the same one.
func (i *Initiator) known(name string, inode uint64) (seen, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, ok := i.seen[name]
	return s, ok && s.inode == inode
}

// learn keeps what was read of a session that is ours and carries I/O.
func (i *Initiator) learn(name string, s seen, up bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if up {
		i.seen[name] = s
	} else {
		delete(i.seen, name)
	}
}

// readSession reads a session.
func (i *Initiator) readSession(dir, name string) (s Session, err error) {
	switch by, err := attribute(dir, "ifacename"); {
	case err != nil:
		return s, err
	case by != i.config.Interface:
		return s, errStranger
	}
	if s.ID, err = numbered(name, "session"); err != nil {
		return s, err
	}
	if s.Target, err = attribute(dir, "targetname"); err != nil {
		return s, err
	}
	if s.Initiator, err = attribute(dir, "initiatorname"); err != nil {
		return s, err
	}
	if s.LoggedIn, err = isLoggedIn(dir); err != nil {
		return s, err
	}
	device, err := filepath.EvalSymlinks(filepath.Join(dir, "device"))
	if err != nil {
		return s, err
	}
	if s.Host, err = numbered(filepath.Base(filepath.Dir(device)), "host"); err != nil {
		return s, err
	}
	s.Address, err = i.portal(s.ID)
	return s, err
}

// portal is where a session logs in; empty for one that has not connected yet.
func (i *Initiator) portal(session int) (string, error) {
	dir := i.class("iscsi_connection", fmt.Sprintf("connection%d:0", session))
	ip, err := attribute(dir, "persistent_address")
	if gone(err) || ip == "" {
		return "", nil
	}
	port, portErr := attribute(dir, "persistent_port")
	if err := errors.Join(err, portErr); err != nil {
		return "", err
	}
	return net.JoinHostPort(ip, port), nil
}

// remember notes since when sessions are down, and forgets those that are not there any more.
func (i *Initiator) remember(names []string, sessions []Session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for name := range i.seen {
		if !slices.Contains(names, name) {
			delete(i.seen, name)
		}
	}
	down := make(map[int]bool)
	for n := range sessions {
		s := &sessions[n]
		if s.LoggedIn {
			continue
		}
		down[s.ID] = true
		if i.down[s.ID].IsZero() {
			i.down[s.ID] = i.now()
		}
		s.Since = i.down[s.ID]
	}
	for id := range i.down {
		if !down[id] {
			delete(i.down, id)
		}
	}
}
