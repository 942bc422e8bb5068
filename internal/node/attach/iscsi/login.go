package iscsi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// Login makes sure that there is a session of ours to the target, which carries I/O. One that does
// is left as it is, at whatever address: its disks are in use.
//
// A session that is down is logged out when nothing uses its disks, and made anew. Else it stays.
// If it logs in at the same address, Login returns volume.ErrUnavailable: iscsid connects again as
// soon as the array answers. If it logs in at another one, Login makes a second session beside it,
// for other volumes; see "Portals that move".
//
// Other errors: [ErrAuth], volume.ErrInvalid for a name or an address that cannot be one,
// volume.ErrBusy for a session with another initiator name whose disks are in use, and
// volume.ErrUnavailable, which says what did not answer.
func (i *Initiator) Login(ctx context.Context, p Portal, c CHAP) error {
	err := i.login(ctx, p, c)
	if err != nil {
		return fmt.Errorf("log in to iSCSI target %s at %s: %w", p.Target, p.Address, err)
	}
	return nil
}

func (i *Initiator) login(ctx context.Context, p Portal, c CHAP) error {
	r := record{Interface: i.config.Interface, Target: p.Target, CHAP: c}
	var err error
	if r.Host, r.Port, err = splitAddress(p.Address); err != nil {
		return err
	}
	if r.Initiator, err = i.config.IQN(ctx); err != nil {
		return fmt.Errorf("this node's initiator name: %w", err)
	}
	if err := r.check(); err != nil {
		return err
	}
	unlock, err := i.targets.lock(ctx, p.Target)
	if err != nil {
		return fmt.Errorf("%w: another operation on the target runs: %w", volume.ErrUnavailable, err)
	}
	defer unlock()
	sessions, err := i.to(ctx, p.Target)
	if err != nil {
		return err
	}
	done, err := i.existing(ctx, sessions, r)
	if done || err != nil {
		return err
	}
	if err := i.save(ctx, r); err != nil {
		return err
	}
	portal := r.portal() + "," + portalGroup
	err = i.command(ctx, "-m", "node", "-I", i.config.Interface, "-T", p.Target, "-p", portal, "--login")
	var refused *commandError
	if errors.As(err, &refused) && refused.status == sessionExists {
		err = nil
	}
	if err != nil {
		return err
	}
	s, ok, err := i.Session(ctx, p.Target)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w: iscsiadm logged in, and there is no session", volume.ErrUnavailable)
	case !s.LoggedIn:
		return isDown(s)
	}
	return nil
}

// existing decides about the sessions to a target that there are, and whether one of them will do.
func (i *Initiator) existing(ctx context.Context, sessions []Session, r record) (done bool, err error) {
	var down error
	for _, s := range sessions {
		if s.LoggedIn && s.Initiator == r.Initiator {
			return true, nil
		}
		by, stays, err := i.discard(ctx, s)
		switch {
		case err != nil:
			return false, err
		case by == "" && stays == nil:
			continue
		}
		switch {
		case stays != nil && s.LoggedIn:
			return false, stays
		case s.LoggedIn:
			return false, fmt.Errorf("%w: %s of session %d, which has the initiator name %s, not %s; end the pods that use it",
				volume.ErrBusy, by, s.ID, s.Initiator, r.Initiator)
		case s.Address == net.JoinHostPort(r.Host, r.Port):
			// While iscsid tries to connect again, it refuses to end a session.
			down = errors.Join(isDown(s), stays)
		}
	}
	return false, down
}

// discard logs out of a session that does not serve, unless something uses a disk of it. It says what does,
// or why the session stays. While it is busy with a disk of the session, that counts as used.
func (i *Initiator) discard(ctx context.Context, s Session) (by string, stays, err error) {
	unlock, ok := i.hosts.tryLock(s.Host)
	if !ok {
		return "another operation runs on the disks", nil, nil
	}
	defer unlock()
	if by, err = i.usedDisk(s); by != "" || err != nil {
		return by, nil, err
	}
	i.log.Info("logs out a session that does not serve", "iscsiTarget", s.Target, "session", s.ID, "address", s.Address,
		"down", !s.LoggedIn)
	return "", i.end(ctx, s), nil
}

// usedDisk says which disk of a session is used, and by what; empty if none is.
func (i *Initiator) usedDisk(s Session) (string, error) {
	disks, err := i.disks(s)
	if err != nil {
		return "", err
	}
	for _, d := range disks {
		by, err := i.use(d)
		if err != nil {
			return "", err
		}
		if by != "" {
			return fmt.Sprintf("%s (%s) is in use (%s)", d.Name, d.Identity, by), nil
		}
	}
	return "", nil
}

var (
	hostName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$`)
	targetName = regexp.MustCompile(`^(iqn|eui|naa)\.[A-Za-z0-9.:_-]{1,219}$`)
)

// splitAddress returns the host, without brackets, and the port of an address.
func splitAddress(address string) (name, port string, err error) {
	name, port, err = net.SplitHostPort(address)
	if err != nil {
		name, port = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"), "3260"
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", "", volume.Invalid("portal", fmt.Sprintf("%.100q has no port from 1 to 65535", address))
	}
	if net.ParseIP(name) == nil && !hostName.MatchString(name) {
		return "", "", volume.Invalid("portal", fmt.Sprintf("%.100q is no address", address))
	}
	return name, port, nil
}
