package fakevpsa

import (
	"slices"
	"strings"
)

// attach attaches volumes to servers, all or none. What is attached already stays as it is.
func (s *state) attach(c *call) (answer, *refusal) {
	servers, refused := s.serversOf(strings.Split(c.id, ","))
	if refused != nil {
		return nil, refused
	}
	ids := c.params.list("volume_name")
	if len(ids) == 0 {
		return nil, refuse(noVolume, "Virtual volume should be found: none is named")
	}
	access := strings.ToUpper(c.params.get("access_type"))
	for _, id := range ids {
		v := s.volumes.get(id)
		if v == nil {
			return nil, refuse(noVolume, "Virtual volume %s should be found", id)
		}
		for _, sv := range servers {
			if refused := attachable(v, sv, access); refused != nil {
				return nil, refused
			}
		}
	}
	for _, id := range ids {
		for _, sv := range servers {
			s.attachOne(c, s.volumes.get(id), sv, access)
		}
	}
	return nil, nil
}

func attachable(v *Volume, sv *Server, access string) *refusal {
	switch {
	case v.Block && sv.IQN == "":
		return refuse(otherError, "Server %s has no IQN", sv.ID)
	case v.Block:
		return nil
	case access != "" && access != "NFS" && access != "SMB":
		return refuse(otherError, "access_type is %q", access)
	case sv.Address == "":
		return refuse(otherError, "Server %s has no IP", sv.ID)
	case access == "" && !strings.Contains(sv.Address, "/"):
		return refuse(otherError, "The IP of server %s must be a CIDR for both NFS and SMB", sv.ID)
	}
	return nil
}

func (s *state) attachOne(c *call, v *Volume, sv *Server, access string) {
	if slices.ContainsFunc(v.Attachments, func(a Attachment) bool { return a.Server == sv.ID }) {
		return
	}
	a := Attachment{Volume: v.ID, Server: sv.ID, LUN: -1, Access: access, ReadOnly: c.params.yes("readonly")}
	if v.Block {
		a.LUN, a.Access = s.freeLUN(sv), ""
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Attachments = append(v.Attachments, a) })
	c.did(v.ID)
}

// freeLUN returns the lowest number that a server does not use, nor another record of its initiator.
func (s *state) freeLUN(server *Server) int {
	used := map[int]bool{}
	for _, sv := range s.servers.items {
		if sv.IQN == server.IQN {
			s.attachments(sv.ID, func(_ *Volume, a Attachment) { used[a.LUN] = true })
		}
	}
	lun := 0
	for used[lun] {
		lun++
	}
	return lun
}

// detach detaches a volume from servers, all or none.
func (s *state) detach(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	servers, refused := s.serversOf(append(c.params.list("servers"), c.params.list("server_name")...))
	if refused != nil {
		return nil, refused
	}
	for _, sv := range servers {
		if !slices.ContainsFunc(v.Attachments, func(a Attachment) bool { return a.Server == sv.ID }) {
			return nil, refuse(noServer, "Volume %s is not attached to server %s", v.ID, sv.ID)
		}
	}
	s.changeVolume(v, c.now, func(v *Volume) {
		v.Attachments = slices.DeleteFunc(v.Attachments, func(a Attachment) bool {
			return slices.ContainsFunc(servers, func(sv *Server) bool { return sv.ID == a.Server })
		})
	})
	c.did(v.ID)
	return nil, nil
}

// permit changes whether a server may write to a volume.
func (s *state) permit(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	server := c.params.get("server_name")
	i := slices.IndexFunc(v.Attachments, func(a Attachment) bool { return a.Server == server })
	if i < 0 {
		return nil, refuse(noServer, "Volume %s is not attached to server %s", v.ID, server)
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Attachments[i].ReadOnly = c.params.yes("read_only") })
	c.did(v.ID)
	return nil, nil
}
