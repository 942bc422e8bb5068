package iscsi

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach/host"
)

// commandTime is how long iscsiadm may take. A login takes [loginTimeout], a logout as long.
const commandTime = 2 * time.Minute

// command runs iscsiadm. It runs to its end even if ctx ends: iscsiadm that is killed while it has
// open-iscsi's records locked leaves them locked, for the whole host. iscsid goes on with a login
// or logout anyway.
func (i *Initiator) command(ctx context.Context, args ...string) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%w: %w", volume.ErrUnavailable, err)
	}
	if err := i.breakLock(); err != nil {
		return fmt.Errorf("%w: lock of open-iscsi's records: %w", volume.ErrUnavailable, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTime)
	defer cancel()
	_, err := i.run(ctx, args...)
	if err == nil {
		return nil
	}
	if errors.Is(err, host.ErrNoProgram) {
		return fmt.Errorf("%w: %w; the package is open-iscsi or iscsi-initiator-utils", volume.ErrUnavailable, err)
	}
	var exit *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &exit) || exit.ExitCode() < 0 {
		return fmt.Errorf("%w: %w", volume.ErrUnavailable, err)
	}
	return &commandError{status: exit.ExitCode(), cause: err}
}

// commandError is an exit status of iscsiadm.
type commandError struct {
	status int
	cause  error
}

// sessionExists is an exit status of iscsiadm that is no failure of a login.
const sessionExists = 15

// failure is what an exit status means and what to do.
type failure struct {
	is   error
	text string
}

// failures are the exit statuses of iscsiadm (include/iscsi_err.h).
var failures = map[int]failure{
	2: {volume.ErrUnavailable, "the node's iscsid does not know the session; restart iscsid on the node"},
	3: {volume.ErrUnavailable, "iscsiadm has no memory, or cannot read the record of the interface"},
	4: {volume.ErrUnavailable, "the connection failed; look at the network between node and array"},
	5: {volume.ErrUnavailable, "the array did not take the login"},
	6: {volume.ErrUnavailable, "open-iscsi's records on the node cannot be used; look for a full disk, and for a stale lock " +
		recordsLock},
	7:  {volume.ErrInvalid, "iscsiadm does not accept a parameter"},
	8:  {volume.ErrUnavailable, "the array does not take logins at this address for this target; look at route, firewall, address and target"},
	9:  {volume.ErrUnavailable, "iscsid has an internal error; look at its log on the node"},
	10: {volume.ErrUnavailable, "the array did not take the logout"},
	11: {volume.ErrUnavailable, "the array takes connections and does not answer on them"},
	12: {volume.ErrUnavailable, "the node's kernel has no iSCSI; load the module iscsi_tcp"},
	13: {volume.ErrUnavailable, "iscsiadm may not; the daemon has to be privileged"},
	15: {volume.ErrUnavailable, "the session exists"},
	19: {volume.ErrUnavailable, "the array refuses the login for good; does it have a target of this name at this address?"},
	20: {volume.ErrUnavailable, "iscsid does not run on the node, or the daemon is not in the host's network namespace; " +
		"start iscsid.socket or iscsid on the node"},
	21: {volume.ErrUnavailable, "open-iscsi does not find the record that was written for it"},
	22: {volume.ErrUnavailable, "the kernel does not show the session"},
	24: {ErrAuth, "look at this node's initiator name on the array, and at user and secret of CHAP"},
	28: {volume.ErrBusy, "iscsid says that the session is in use"},
	29: {volume.ErrUnavailable, "iscsid wants to be asked again"},
	31: {volume.ErrUnavailable, "iscsid lost a process"},
	32: {volume.ErrUnavailable, "iscsid was restarted while the session was down, and does not end it before the array answers"},
}

func (e *commandError) meaning() failure {
	if f, ok := failures[e.status]; ok {
		return f
	}
	return failure{volume.ErrUnavailable, "iscsiadm failed"}
}

// Error says what the status means, what to do, and what iscsiadm wrote.
func (e *commandError) Error() string {
	f := e.meaning()
	return fmt.Sprintf("%v: %s (%v)", f.is, f.text, e.cause)
}

// Unwrap makes it what its status means.
func (e *commandError) Unwrap() []error { return []error{e.meaning().is, e.cause} }
