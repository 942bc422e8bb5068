package iscsi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
)

// Session returns our session to a target, and whether there is one. Of several it returns one that
// is logged in, else the newest. It asks the kernel alone.
func (i *Initiator) Session(ctx context.Context, target string) (Session, bool, error) {
	all, err := i.to(ctx, target)
	if err != nil || len(all) == 0 {
		return Session{}, false, err
	}
	slices.SortFunc(all, func(a, b Session) int { return b.ID - a.ID })
	if up := slices.IndexFunc(all, func(s Session) bool { return s.LoggedIn }); up >= 0 {
		return all[up], true, nil
	}
	return all[0], true, nil
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
	i.remember(ours)
	return ours, nil
}

func (i *Initiator) to(ctx context.Context, target string) ([]Session, error) {
	all, err := i.Sessions(ctx)
	return slices.DeleteFunc(all, func(s Session) bool { return s.Target != target }), err
}

var errStranger = errors.New("the session is not ours")

// session reads a session, which is named session and its number. [errStranger] is one of another
// interface.
func (i *Initiator) session(name string) (s Session, err error) {
	dir := i.class("iscsi_session", name)
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
	state, err := attribute(dir, "state")
	if err != nil {
		return s, err
	}
	s.LoggedIn = state == "LOGGED_IN"
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

// remember notes since when sessions are down.
func (i *Initiator) remember(sessions []Session) {
	i.mu.Lock()
	defer i.mu.Unlock()
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
