package iscsi

import (
	"fmt"
	"net"
	"strings"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/volume"
)

// record is what open-iscsi knows of a target at an address, for one interface. What it does not
// say is as the host's iscsid.conf has it.
type record struct {
	Interface, Initiator string
	Target, Host, Port   string
	CHAP                 CHAP
}

// portalGroup is the tag of the portal group. Without one, open-iscsi keeps the records of all
// interfaces in one file and takes the last one. It does not compare the tag with the array's.
const portalGroup = "1"

// loginTimeout is how many seconds a login may take, when a session connects again too. iscsid
// tries once: the caller repeats.
const loginTimeout = 15

func (r record) portal() string { return net.JoinHostPort(r.Host, r.Port) }

// check refuses what open-iscsi would read as something else.
func (r record) check() error {
	const longest, notPlain = 255, "begins or ends with a blank, has a control character, or more than 255 bytes"
	switch {
	case !targetName.MatchString(r.Target):
		return volume.Invalid("target", fmt.Sprintf("%.100q is no iSCSI name", r.Target))
	case !targetName.MatchString(r.Initiator):
		return fmt.Errorf("%w: this node's initiator name %.100q is no iSCSI name", volume.ErrInvalid, r.Initiator)
	case !plain(r.CHAP.User) || len(r.CHAP.User) > longest:
		return fmt.Errorf("%w: the CHAP user %s", volume.ErrInvalid, notPlain)
	case !plain(r.CHAP.Secret) || len(r.CHAP.Secret) > longest:
		return fmt.Errorf("%w: the CHAP secret %s", volume.ErrInvalid, notPlain)
	case r.CHAP.User != "" && r.CHAP.Secret == "", r.CHAP.User == "" && r.CHAP.Secret != "":
		return fmt.Errorf("%w: of CHAP user and secret, one is missing", volume.ErrInvalid)
	}
	return nil
}

// plain reports whether a line of a record can hold the text.
func plain(text string) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return utf8.ValidString(text) && text == strings.TrimSpace(text) && !strings.ContainsFunc(text, control)
}

// interfaceText is the record of our interface. It leaves out iface.transport_name on purpose:
// open-iscsi takes such an interface only where it is named. A discovery by the host's
// administrator would else make its records for our interface, and none for the host's own.
func interfaceText(name, initiator string) []byte {
	return fmt.Appendf(nil, "# Made by Katbox. Without a transport: only what names this interface uses it.\n"+
		"iface.iscsi_ifacename = %s\niface.initiatorname = %s\n", name, initiator)
}

// text is the record as open-iscsi reads it.
func (r record) text() []byte {
	lines := []string{
		"# Made by Katbox.",
		"node.name = " + r.Target,
		"node.tpgt = " + portalGroup,
		// Nothing logs in at boot: what is attached then, the kubelet stages anew.
		"node.startup = manual",
		"node.leading_login = No",
		"iface.iscsi_ifacename = " + r.Interface,
		"iface.transport_name = tcp",
		"iface.initiatorname = " + r.Initiator,
		"node.discovery_type = static",
		fmt.Sprintf("node.session.initial_login_retry_max = %d", 1),
		"node.session.nr_sessions = 1",
		// LUNs become disks one at a time, by Scan.
		"node.session.scan = manual",
		"node.session.reopen_max = 0",
		fmt.Sprintf("node.session.timeo.replacement_timeout = %d", int(ReplacementTimeout.Seconds())),
	}
	if r.CHAP.User == "" {
		lines = append(lines, "node.session.auth.authmethod = None")
	} else {
		lines = append(lines,
			"node.session.auth.authmethod = CHAP",
			"node.session.auth.username = "+r.CHAP.User,
			"node.session.auth.password = "+r.CHAP.Secret)
	}
	lines = append(lines,
		"node.conn[0].address = "+r.Host,
		"node.conn[0].port = "+r.Port,
		"node.conn[0].startup = manual",
		fmt.Sprintf("node.conn[0].timeo.login_timeout = %d", loginTimeout),
		// An array that is away without a word is noticed after ten seconds.
		"node.conn[0].timeo.noop_out_interval = 5",
		"node.conn[0].timeo.noop_out_timeout = 5",
	)
	return []byte(strings.Join(lines, "\n") + "\n")
}
