package fakevpsa

import (
	"cmp"
	"maps"
	"strings"
)

// available is what is free, in MiB.
func (p *Pool) available() int64 { return max(p.Capacity<<10-p.Used-p.allocated, 0) }

// Free returns what the pool has left, in MiB.
func (p *Pool) Free() int64 { return p.available() }

// Provisioned returns what was promised to volumes, in GiB.
func (p *Pool) Provisioned() int64 { return p.provisioned }

func (s *state) pool(c *call) (*Pool, *refusal) {
	if p := s.pools.get(c.id); p != nil {
		return p, nil
	}
	return nil, refuse(otherError, "Pool %s not found", c.id)
}

func (s *state) listPools(c *call) (answer, *refusal) {
	return list("pools", c, s.pools.all(), writePool), nil
}

func (s *state) getPool(c *call) (answer, *refusal) {
	p, refused := s.pool(c)
	if refused != nil {
		return nil, refused
	}
	return one("pool", func(e *encoder) { writePool(e, p) }), nil
}

func writePool(e *encoder, p *Pool) {
	e.text("name", p.ID)
	e.text("display_name", p.Name)
	e.text("status", p.Status)
	e.number("capacity", p.Capacity)
	// Whole numbers: the OpenStack drivers take them for such.
	e.number("available_capacity", p.available()>>10)
	e.number("provisioned_capacity", p.provisioned)
	if p.Mode != "" {
		e.text("capacity_mode", p.Mode)
	}
	for _, key := range []string{"capacityhistory", "alertmode", "protectedmode", "emergencymode"} {
		if value, set := p.Protection[key]; set {
			e.text(key, value)
		}
	}
}

func (s *state) protectPool(c *call) (answer, *refusal) {
	p, refused := s.pool(c)
	if refused != nil {
		return nil, refused
	}
	set := map[string]string{}
	for _, key := range []string{"capacityhistory", "alertmode", "protectedmode", "emergencymode"} {
		if _, given := c.params[key]; given {
			if _, err := c.params.number(key); err != nil {
				return nil, refuse(otherError, "%v", err)
			}
			set[key] = c.params.get(key)
		}
	}
	s.changePool(p, func(p *Pool) {
		if p.Protection == nil {
			p.Protection = map[string]string{}
		}
		maps.Copy(p.Protection, set)
	})
	c.did(p.ID)
	return nil, nil
}

func (s *state) version(*call) (answer, *refusal) {
	version, array := s.settings.Version, s.array()
	return func(e *encoder) {
		e.text("vpsa_name", array)
		e.text("version", version)
	}, nil
}

func (s *state) config(*call) (answer, *refusal) {
	set := s.settings
	array := s.array()
	return one("config", func(e *encoder) {
		e.text("vpsa_name", array)
		e.text("software_version", set.Version)
		e.yes("recycle_bin", set.RecycleBin)
	}), nil
}

func (s *state) controllers(c *call) (answer, *refusal) {
	set, target, array := s.settings, s.target(), s.array()
	return list("vcontrollers", c, []int{0, 1}, func(e *encoder, i int) {
		short := []string{"vc-0", "vc-1"}[i]
		e.text("name", array+"-"+short)
		e.text("display_name", short)
		if i == set.Active {
			e.text("state", "active")
		} else {
			e.text("state", "standby")
		}
		e.text("target", target)
		ip4, ip6 := set.Portals[i], ""
		if strings.Contains(ip4, ":") {
			ip4, ip6 = "", ip4
		}
		e.text("iscsi_ip", ip4)
		e.text("iscsi_ipv6", ip6)
		e.text("mgmt-ip", ip4)
		e.text("software-ver", cmp.Or(set.Software, set.Version))
		e.text("heartbeat1", "ok")
		e.text("heartbeat2", "ok")
		e.text("vpsa_chap_user", set.CHAPUser)
		e.text("vpsa_chap_secret", set.CHAPSecret)
	}), nil
}

func (s *state) setRecycleBin(c *call) (answer, *refusal) {
	if value := c.params.get("recyclebin"); value != "YES" && value != "NO" {
		return nil, refuse(otherError, "recyclebin is %q, neither YES nor NO", value)
	}
	s.settings.RecycleBin = c.params.yes("recyclebin")
	c.did(s.array())
	return nil, nil
}
