package vpsa

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/katbox/katbox/internal/controller/array"
)

// port is where iSCSI targets listen.
const port = "3260"

// Health asks for the controllers, the pools and the version.
func (c *client) Health(ctx context.Context) (array.Health, error) {
	var controllers []controller
	err := c.get(ctx, call{pattern: "vcontrollers", check: true, fields: map[string]field{
		"vcontrollers": many(func(one controller) { controllers = append(controllers, one) }),
	}})
	if err != nil {
		return array.Health{}, err
	}
	active := controller{}
	for _, one := range controllers {
		if isOneOf(one.State, "active") {
			active = one
		}
	}
	if active.State == "" {
		return array.Health{}, fmt.Errorf("%w: none of the %d controllers of %s is active", array.ErrBadAnswer, len(controllers), c.endpoint)
	}
	h := array.Health{
		Version: string(active.Software),
		IQN:     string(active.Target),
		CHAP:    array.CHAP{User: string(active.User), Secret: string(active.Secret)},
	}
	if ip := active.IPv6; ip != "" {
		h.Portal = net.JoinHostPort(string(ip), port)
	} else if ip := active.IPv4; ip != "" {
		h.Portal = net.JoinHostPort(string(ip), port)
	}
	err = c.get(ctx, call{pattern: "pools", check: true, fields: map[string]field{
		"pools": many(func(p pool) { h.Pools = append(h.Pools, p.words()) }),
	}})
	if err != nil {
		return array.Health{}, err
	}
	version, err := c.version(ctx)
	if err != nil {
		return array.Health{}, err
	}
	if version != "" {
		h.Version = version
	}
	return h, nil
}

// versionTime is how long the array may take to say its version.
const versionTime = 5 * time.Second

// version is the array's release; empty where it never said it. No public client asks for that, so it proves nothing that
// there is no answer, or one that makes no sense: controllers and pools were told just now.
func (c *client) version(ctx context.Context) (string, error) {
	var version string
	read := func(d *json.Decoder) error {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if found := versionIn(raw); err == nil && found != "" {
			version = found
		}
		return err
	}
	fields := map[string]field{}
	for _, name := range versionNames {
		fields[name] = read
	}
	err := c.send(ctx, call{method: http.MethodGet, pattern: "vpsaversion", check: true, fields: fields, limit: min(versionTime, c.timeout)})
	switch {
	case err != nil && ctx.Err() != nil:
		return "", err
	case err == nil && version != "":
		c.release.Store(&version)
	}
	if last := c.release.Load(); last != nil {
		return *last, nil
	}
	return "", nil
}

// versionNames are the fields in which the version may stand.
var versionNames = []string{"version", "vpsaversion", "vpsa_version", "software_version", "software-ver"}

// versionIn finds it in a string, or in an object with one of the names.
func versionIn(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var inside map[string]json.RawMessage
	if json.Unmarshal(raw, &inside) == nil {
		for _, name := range versionNames {
			if json.Unmarshal(inside[name], &s) == nil && s != "" {
				return s
			}
		}
	}
	return ""
}

// Configure changes nothing: Katbox needs no setting of a VPSA to be different. Whether deleted volumes
// go to the recycle bin, for all who use the array, is its administrator's decision.
func (c *client) Configure(context.Context) ([]string, error) { return nil, nil }
