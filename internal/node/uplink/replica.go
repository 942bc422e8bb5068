package uplink

import (
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/katbox/katbox/internal/model/api"
)

// A replica may have several addresses: one of each family, or one in each of two names. It has one connection to a
// node, and closes the older of two. So a node keeps one, over the address that was first, and the others stand by
// until that is lost.

// replicaText is what replicas call themselves, in this version and in later ones.
var replicaText = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// replicaOf returns which replica has answered; empty for one that does not say, as before.
func replicaOf(answer http.Header) string {
	if id := answer.Get(api.HeaderReplica); replicaText.MatchString(id) {
		return id
	}
	return ""
}

// errSame: another address has a connection to the same replica.
type errSame struct{ replica, address string }

func (e *errSame) Error() string {
	return fmt.Sprintf("the same replica as at %s, which has the connection", e.address)
}

// other returns the address of another link that has a connection to a replica, which is in use; empty for none. mu is held.
func (u *Uplink) other(l *link, replica string) string {
	if replica == "" {
		return ""
	}
	for c := range u.connections {
		if c.link != l && c.replica == replica && c.open() && c.leaveContext.Err() == nil {
			return c.gateway
		}
	}
	return ""
}

// leadsElsewhere reports whether the replica that was at a link's address still has a connection over another one.
func (u *Uplink) leadsElsewhere(l *link) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.other(l, l.replica) != ""
}

// standBy notes that another address leads to the same replica.
func (l *link) standBy(same *errSame) {
	l.replica, l.refusals, l.reported = same.replica, 0, ""
	l.note(time.Time{}, same)
	l.log.V(1).Info(same.Error())
}
