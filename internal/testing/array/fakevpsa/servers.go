package fakevpsa

import (
	"slices"
	"strings"
)

// record returns the server record that a path names.
func (s *state) server(id string) (*Server, *refusal) {
	if sv := s.servers.get(id); sv != nil {
		return sv, nil
	}
	return nil, refuse(noServer, "Server %s not found", id)
}

// attachments visits where a server is attached.
func (s *state) attachments(server string, visit func(*Volume, Attachment)) {
	for _, v := range s.volumes.items {
		for _, a := range v.Attachments {
			if a.Server == server {
				visit(v, a)
			}
		}
	}
}

func (s *state) attached(server string) (n int) {
	s.attachments(server, func(*Volume, Attachment) { n++ })
	return n
}

// The fields of a server's request that are no options, or secret.
var fixedOfServers = []string{"display_name", "iqn", "iscsi", "vpsachapsecret", "hostchapsecret"}

func (s *state) createServer(c *call) (answer, *refusal) {
	sv := &Server{
		Name: c.params.get("display_name"), IQN: c.params.get("iqn"), Address: c.params.get("iscsi"),
		Created: c.now.Unix(), Modified: c.now.Unix(),
	}
	for key := range options(nil, c) {
		if !slices.Contains(fixedOfServers, key) {
			if sv.Options == nil {
				sv.Options = map[string]string{}
			}
			sv.Options[key] = c.params.get(key)
		}
	}
	if secret := c.params.get("vpsachapsecret"); secret != "" && (len(secret) < 12 || len(secret) > 16) {
		return nil, refuse(otherError, "The CHAP secret must have 12 to 16 characters")
	}
	if sv.IQN == "" && sv.Address == "" {
		return nil, refuse(otherError, "Neither iqn nor iscsi is given")
	}
	if refused := s.freeServer(sv); refused != nil {
		return nil, refused
	}
	sv.ID = s.newID("srv")
	s.servers.put(sv)
	c.did(sv.ID)
	return s.created("server_name", sv.ID), nil
}

// freeServer refuses a record whose name, or IQN where that matters, another one has.
func (s *state) freeServer(sv *Server) *refusal {
	if !labels.MatchString(sv.Name) {
		return refuse(otherError, "%q is no valid name", sv.Name)
	}
	if other := s.servers.named(sv.Name); other != nil && other.ID != sv.ID {
		return refuse(otherError, "Server name %s already exists", sv.Name)
	}
	if s.settings.OneIQN && sv.IQN != "" {
		for _, other := range s.servers.items {
			if other.IQN == sv.IQN && other.ID != sv.ID {
				return refuse(otherError, "Server %s has the IQN already", other.ID)
			}
		}
	}
	return nil
}

func (s *state) listServers(c *call) (answer, *refusal) {
	all := s.servers.all()
	if wanted, asked := c.params["display_name"]; asked {
		all = slices.DeleteFunc(all, func(sv *Server) bool { return !slices.Contains(wanted, sv.Name) })
	}
	write := s.serverWriter()
	return list("servers", c, all, func(e *encoder, sv *Server) { write(e, sv, nil, nil) }), nil
}

func (s *state) getServer(c *call) (answer, *refusal) {
	sv, refused := s.server(c.id)
	if refused != nil {
		return nil, refused
	}
	write := s.serverWriter()
	return one("server", func(e *encoder) { write(e, sv, nil, nil) }), nil
}

func (s *state) configServer(c *call) (answer, *refusal) {
	old, refused := s.server(c.id)
	if refused != nil {
		return nil, refused
	}
	if s.attached(old.ID) > 0 && !c.params.yes("force") {
		return nil, refuse(otherError, "Volumes are attached to server %s", old.ID)
	}
	changed := *old
	changed.Modified = c.now.Unix()
	if iqn, given := c.params["iqn"]; given {
		changed.IQN = iqn[0]
	}
	if address, given := c.params["iscsi"]; given {
		changed.Address = address[0]
	}
	if refused := s.freeServer(&changed); refused != nil {
		return nil, refused
	}
	s.servers.put(&changed)
	c.did(old.ID)
	return nil, nil
}

func (s *state) renameServer(c *call) (answer, *refusal) {
	old, refused := s.server(c.id)
	if refused != nil {
		return nil, refused
	}
	changed := *old
	changed.Name, changed.Modified = c.params.get("new_name"), c.now.Unix()
	if refused := s.freeServer(&changed); refused != nil {
		return nil, refused
	}
	s.servers.put(&changed)
	c.did(old.ID)
	return nil, nil
}

func (s *state) deleteServer(c *call) (answer, *refusal) {
	sv, refused := s.server(c.id)
	if refused != nil {
		return nil, refused
	}
	if n := s.attached(sv.ID); n > 0 {
		return nil, refuse(otherError, "%d volumes are attached to server %s", n, sv.ID)
	}
	s.servers.remove(sv.ID)
	c.did(sv.ID)
	return nil, nil
}

func (s *state) listVolumesOfServer(c *call) (answer, *refusal) {
	sv, refused := s.server(c.id)
	if refused != nil {
		return nil, refused
	}
	var all []*Volume
	s.attachments(sv.ID, func(v *Volume, _ Attachment) { all = append(all, v) })
	return s.volumesAnswer(c, all), nil
}

// listServersOfVolume shows where a volume is attached, with target and LUN.
func (s *state) listServersOfVolume(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	write := s.serverWriter()
	servers := map[string]*Server{}
	for _, a := range v.Attachments {
		servers[a.Server] = s.servers.get(a.Server)
	}
	attachments := slices.DeleteFunc(slices.Clone(v.Attachments), func(a Attachment) bool { return servers[a.Server] == nil })
	return list("servers", c, attachments, func(e *encoder, a Attachment) { write(e, servers[a.Server], v, &a) }), nil
}

// serverWriter returns what writes a server, and its attachment to a volume where one is given. It
// needs no lock.
func (s *state) serverWriter() func(*encoder, *Server, *Volume, *Attachment) {
	target, user, secret := s.target(), s.settings.CHAPUser, s.settings.CHAPSecret
	return func(e *encoder, sv *Server, v *Volume, a *Attachment) {
		e.text("name", sv.ID)
		e.text("display_name", sv.Name)
		e.textOrNull("iqn", sv.IQN)
		e.textOrNull("iscsi_ip", sv.Address)
		e.null("os")
		e.text("status", "Active")
		e.text("registered", "no")
		switch {
		case a == nil:
			e.null("access_type")
			e.text("read_only", "NO")
			e.null("target")
			e.null("lun")
		case v.Block:
			e.null("access_type")
			e.yes("read_only", a.ReadOnly)
			e.text("target", target)
			e.number("lun", int64(a.LUN))
		default:
			e.textOrNull("access_type", a.Access)
			e.yes("read_only", a.ReadOnly)
			e.null("target")
			e.null("lun")
		}
		e.text("ipsec_iscsi", "0")
		e.text("ipsec_nfs", "0")
		e.text("vpsa_chap_user", user)
		e.text("vpsa_chap_secret", secret)
		e.null("host_chap_user")
		e.null("host_chap_secret")
		e.time("created_at", sv.Created)
		e.time("modified_at", sv.Modified)
	}
}

// serversOf returns the records that a list of IDs names.
func (s *state) serversOf(ids []string) ([]*Server, *refusal) {
	if len(ids) == 0 {
		return nil, refuse(noServer, "Server not found: none is named")
	}
	servers := make([]*Server, len(ids))
	for i, id := range ids {
		sv, refused := s.server(strings.TrimSpace(id))
		if refused != nil {
			return nil, refused
		}
		servers[i] = sv
	}
	return servers, nil
}
