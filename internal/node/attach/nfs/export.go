package nfs

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
)

// export is where a volume is mounted from.
type export struct {
	// host is a name or an address; address is valid if it is an address.
	host    string
	address netip.Addr
	// path begins with a slash.
	path string
}

// zoneName is the name, or the number, of an interface.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)

// parseAddress reads an IP address. Its zone may be anything for netip, but the kernel reads what follows a comma in
// it as an option of the mount.
func parseAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err == nil && a.Zone() != "" && !zoneName.MatchString(a.Zone()) {
		return netip.Addr{}, fmt.Errorf("the zone of %q is no interface", text)
	}
	return a, err
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
	if slices.Contains(strings.Split(path, "/"), "..") {
		return refuse("whose path leads upwards")
	}
	var err error
	switch e.address, err = parseAddress(inner); {
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
