package iscsi

import (
	"errors"
	"fmt"
	"time"
)

// ReplacementTimeout is how long the kernel keeps the I/O of a session that is down, before it
// fails it. A failed write makes a file system read-only (ext4) or shuts it down (XFS) until all
// pods on it have ended. An array that changes its active controller is away for up to a minute,
// one that is upgraded or restarted for a few: five minutes outlast both. A longer time would do
// harm where an array is gone for good: that is how long an unmount waits for it.
const ReplacementTimeout = 5 * time.Minute

// ErrAuth: the array refused the initiator's name, or the user and secret of CHAP. Repeating helps
// only when one of them changes.
var ErrAuth = errors.New("the array refuses the login")

// Portal is a target at an address.
type Portal struct {
	// Target is the target's name (an IQN).
	Target string
	// Address is where it listens: host, host:port or [IPv6]:port. The port is 3260 without one.
	Address string
}

// CHAP is what a login proves itself with. An empty User is no authentication.
type CHAP struct {
	User   string
	Secret string
}

// String leaves the secret out.
func (c CHAP) String() string { return fmt.Sprintf("CHAP user %q", c.User) }

// Format is String for every verb: no log line and no error shows the secret.
func (c CHAP) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// MarshalJSON is String too.
func (c CHAP) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", c.String()), nil }

// Session is a session of ours.
type Session struct {
	// ID is the kernel's number of the session; Host that of its SCSI host.
	ID, Host int
	// Target is the target's name; Address is host:port of the portal at which the session logs in,
	// when it connects again too.
	Target, Address string
	// Initiator is the initiator's name that it logged in with.
	Initiator string
	// LoggedIn: it carries I/O. Else it is down, and iscsid connects again until it succeeds or the
	// session is logged out.
	LoggedIn bool
	// Since is when this process first saw it down; zero while it is logged in.
	Since time.Time
}
