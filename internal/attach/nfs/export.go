package nfs

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/katbox/katbox/internal/volume"
)

// export is where a volume is mounted from.
type export struct {
	// host is a name or an address; address is valid if it is an address.
	host    string
	address netip.Addr
	// path begins with a slash.
	path string
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252})$`)

// parseExport reads an export such as 10.0.0.1:/x, nas.example.com:/x or [fd00::1]:/x.
func parseExport(text string) (export, error) {
	refuse := func(reason string) (export, error) {
		return export{}, volume.Invalid("publish_context", fmt.Sprintf("has the export %.200q, %s", text, reason))
	}
	host, path, found := strings.Cut(text, ":/")
	if !found {
		return refuse("which is not of the form HOST:/PATH")
	}
	e := export{host: host, path: "/" + path}
	// The kernel's table of mounts escapes what it has to, but no path of an array has these.
	if strings.ContainsFunc(e.path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return refuse("whose path has control characters")
	}
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		inner, bracketed = strings.CutSuffix(inner, "]")
	}
	var err error
	switch e.address, err = netip.ParseAddr(inner); {
	case bracketed && (err != nil || !e.address.Is6() || e.address.Is4In6()):
		return refuse("where no IPv6 address is between the brackets")
	case !bracketed && err == nil && e.address.Is6():
		return refuse("whose IPv6 address has no brackets around it")
	case err != nil && (!hostName.MatchString(host) || strings.Contains(host, "..")):
		return refuse("whose host is neither a name nor an address")
	}
	e.host = inner
	return e, nil
}
