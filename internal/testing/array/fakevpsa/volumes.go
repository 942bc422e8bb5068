package fakevpsa

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// What an array writes first in use for a new volume, in MiB.
const newVolume = 14

var labels = regexp.MustCompile(`^[^'"\\]{1,128}$`)

// volume returns the volume that a path names.
func (s *state) volume(c *call) (*Volume, *refusal) {
	if v := s.volumes.get(c.id); v != nil {
		return v, nil
	}
	return nil, refuse(noVolume, "Virtual volume %s should be found", c.id)
}

// still returns the volume that a path names, if the array is not busy with it.
func (s *state) still(c *call) (*Volume, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	return v, s.busy(v)
}

func (s *state) busy(v *Volume) *refusal {
	if status := v.status(s.requests); status != "Available" && status != "In-use" {
		return refuse(otherError, "Volume %s is busy: its status is %s", v.ID, status)
	}
	return nil
}

// room refuses what a pool has no room for.
func (s *state) room(id string, size int64) *refusal {
	p := s.pools.get(id)
	switch {
	case p == nil:
		return refuse(otherError, "Pool %s not found", id)
	case p.Mode == "protected" || p.Mode == "emergency":
		return refuse(otherError, "Pool %s is in %s mode", id, p.Mode)
	case p.available() <= 0 || p.Limit > 0 && p.provisioned+size > p.Limit:
		return refuse(otherError, "Not enough capacity in pool %s", id)
	}
	return nil
}

// freeName refuses a display name that cannot be one, or that a volume has.
func (s *state) freeName(name string) *refusal {
	if !labels.MatchString(name) {
		return refuse(otherError, "%q is no valid name", name)
	}
	if v := s.volumes.named(name); v != nil {
		return refuse(otherError, "Volume name %s already exists", name)
	}
	return nil
}

func (s *state) freeExport(path string) *refusal {
	for _, v := range s.volumes.items {
		if v.Export == path {
			return refuse(otherError, "Export name %s already exists", path)
		}
	}
	return nil
}

// The fields of a request that are no options of the volume.
var fixed = []string{"name", "capacity", "pool", "block", "export_name", "timeout", "start", "limit", "page", "force"}

func options(old map[string]string, c *call) map[string]string {
	for key := range c.params {
		if !slices.Contains(fixed, key) {
			if old == nil {
				old = map[string]string{}
			}
			old[key] = c.params.get(key)
		}
	}
	return old
}

func (s *state) createVolume(c *call) (answer, *refusal) {
	size, err := c.params.size("capacity")
	if err != nil {
		return nil, refuse(otherError, "%v", err)
	}
	v := &Volume{
		Name: c.params.get("name"), Pool: c.params.get("pool"), Size: size, Allocated: newVolume,
		Block: c.params.yes("block"), Options: options(nil, c), Created: c.now.Unix(), Modified: c.now.Unix(),
	}
	if anon := c.params.get("nfsanongid"); anon == "0" {
		return nil, refuse(otherError, "nfsanongid must not be 0")
	}
	if !v.Block {
		v.Export = "/export/" + v.Name
		if name := c.params.get("export_name"); name != "" {
			v.Export = "/export/" + name
		}
	}
	return s.admit(c, v)
}

// admit adds a new volume, if nothing speaks against it.
func (s *state) admit(c *call, v *Volume) (answer, *refusal) {
	if refused := s.freeName(v.Name); refused != nil {
		return nil, refused
	}
	if v.Export != "" {
		if refused := s.freeExport(v.Export); refused != nil {
			return nil, refused
		}
	}
	if refused := s.room(v.Pool, v.Size); refused != nil {
		return nil, refused
	}
	v.ID, v.Group = s.newID("volume"), s.newID("cg")
	v.Status, v.Until = s.born()
	s.addVolume(v)
	c.did(v.ID)
	return s.created("vol_name", v.ID), nil
}

// created answers with the ID of a new object, unless the array is terse.
func (s *state) created(key, id string) answer {
	if s.settings.Terse {
		return nil
	}
	return name(key, id)
}

func (s *state) listVolumes(c *call) (answer, *refusal) {
	only, files := c.params.yes("showonlyblock"), c.params.yes("showonlyfile")
	wanted := c.params.get("display_name")
	if _, asked := c.params["display_name"]; asked {
		found := s.matching(wanted)
		write := s.volumesAnswer(c, found)
		if len(found) > 0 {
			return write, nil
		}
		return func(e *encoder) {
			write(e)
			e.text("status-msg", fmt.Sprintf("Virtual volume %s doesn't exist", wanted))
		}, nil
	}
	all := s.volumes.all()
	if only || files {
		all = slices.DeleteFunc(all, func(v *Volume) bool { return v.Block != only })
	}
	return s.volumesAnswer(c, all), nil
}

// matching returns the volumes whose name is the one given, or begins with it and a blank: clients
// send the first word of a name.
func (s *state) matching(name string) []*Volume {
	var found []*Volume
	for _, v := range s.volumes.items {
		if v.Name == name || strings.HasPrefix(v.Name, name+" ") {
			found = append(found, v)
		}
	}
	return found
}

func (s *state) listFreeVolumes(c *call) (answer, *refusal) {
	all := slices.DeleteFunc(s.volumes.all(), func(v *Volume) bool { return len(v.Attachments) > 0 })
	return s.volumesAnswer(c, all), nil
}

func (s *state) listVolumesOfPool(c *call) (answer, *refusal) {
	all := slices.DeleteFunc(s.volumes.all(), func(v *Volume) bool { return v.Pool != c.id })
	return s.volumesAnswer(c, all), nil
}

func (s *state) listBin(c *call) (answer, *refusal) {
	all := slices.DeleteFunc(s.bin.all(), func(v *Volume) bool { return v.Pool != c.id })
	return s.volumesAnswer(c, all), nil
}

func (s *state) volumesAnswer(c *call, volumes []*Volume) answer {
	return list("volumes", c, volumes, s.volumeWriter())
}

func (s *state) getVolume(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	write := s.volumeWriter()
	return one("volume", func(e *encoder) { write(e, v) }), nil
}

func (s *state) updateVolume(c *call) (answer, *refusal) {
	v, refused := s.still(c)
	if refused != nil {
		return nil, refused
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Options = options(v.Options, c) })
	c.did(v.ID)
	return nil, nil
}

func (s *state) deleteVolume(c *call) (answer, *refusal) {
	v, refused := s.still(c)
	switch {
	case refused != nil:
		return nil, refused
	case len(v.Attachments) > 0:
		return nil, refuse(otherError, "Volume %s is attached to servers", v.ID)
	case v.Snapshots > 0:
		return nil, refuse(otherError, "Volume %s has snapshots", v.ID)
	}
	if s.settings.RecycleBin {
		deleted := *v
		deleted.Deleted = c.now.Unix()
		s.volumes.remove(v.ID)
		s.bin.put(&deleted)
	} else {
		s.dropVolume(v)
	}
	c.did(v.ID)
	return nil, nil
}

func (s *state) purgeVolume(c *call) (answer, *refusal) {
	v := s.bin.get(c.id)
	if v == nil {
		return nil, refuse(noVolume, "Virtual volume %s should be found", c.id)
	}
	s.dropVolume(v)
	c.did(v.ID)
	return nil, nil
}

// expandVolume adds to the size: the field is the increment.
func (s *state) expandVolume(c *call) (answer, *refusal) {
	v, refused := s.still(c)
	if refused != nil {
		return nil, refused
	}
	more, err := c.params.size("capacity")
	if err != nil {
		return nil, refuse(otherError, "%v", err)
	}
	if refused := s.room(v.Pool, more); refused != nil {
		return nil, refused
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Size += more })
	c.did(v.ID)
	return nil, nil
}

func (s *state) renameVolume(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	name := c.params.get("new_name")
	if name != v.Name {
		if refused := s.freeName(name); refused != nil {
			return nil, refused
		}
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Name = name })
	c.did(v.ID)
	return s.created("vol_name", v.ID), nil
}

func (s *state) commentVolume(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Comment = c.params.get("new_comment") })
	c.did(v.ID)
	return nil, nil
}

func (s *state) exportVolume(c *call) (answer, *refusal) {
	v, refused := s.volume(c)
	if refused != nil {
		return nil, refused
	}
	path := "/export/" + c.params.get("exportname")
	switch {
	case v.Block:
		return nil, refuse(otherError, "Volume %s is a block volume", v.ID)
	case len(v.Attachments) > 0:
		return nil, refuse(otherError, "Volume %s is attached to servers", v.ID)
	case path == "/export/":
		return nil, refuse(otherError, "exportname is missing")
	}
	if path != v.Export {
		if refused := s.freeExport(path); refused != nil {
			return nil, refused
		}
	}
	s.changeVolume(v, c.now, func(v *Volume) { v.Export = path })
	c.did(v.ID)
	return nil, nil
}

// volumeWriter returns what writes volumes as they are now. It needs no lock.
func (s *state) volumeWriter() func(*encoder, *Volume) {
	requests, portal := s.requests, s.portal()
	pools := map[string]string{}
	for _, p := range s.pools.items {
		pools[p.ID] = p.Name
	}
	return func(e *encoder, v *Volume) {
		e.text("name", v.ID)
		e.text("display_name", v.Name)
		e.text("cg_name", v.Group)
		e.text("cg_display_name", v.Name)
		e.text("cg_user_created", "NO")
		e.text("pool_name", v.Pool)
		e.text("pool_display_name", pools[v.Pool])
		e.text("status", v.status(requests))
		e.textOrNull("comment", v.Comment)
		e.number("virtual_capacity", v.Size)
		e.number("provisioned_capacity", v.Size)
		e.gib("allocated_capacity", v.Allocated)
		e.number("data_copies_capacity", 0)
		e.text("thin", "YES")
		e.yes("encryption", v.Options["crypt"] == "YES")
		e.yes("compress", v.Options["compress"] == "YES")
		e.yes("dedupe", v.Options["dedupe"] == "YES")
		e.null("server_name")
		servers := make([]string, len(v.Attachments))
		for i, a := range v.Attachments {
			servers[i] = a.Server
		}
		e.text("server_ext_names", strings.Join(servers, ","))
		for _, key := range []string{"access_type", "read_only", "target", "lun"} {
			e.null(key)
		}
		e.yes("has_snapshots", v.Snapshots > 0)
		e.text("has_backup", "NO")
		e.text("has_mirror", "NO")
		for _, key := range []string{"read_iops_limit", "read_mbps_limit", "write_iops_limit", "write_mbps_limit"} {
			e.text(key, "0")
		}
		if v.Block {
			e.text("data_type", "BLOCK")
		} else {
			e.text("data_type", "File-System")
			e.text("export_name", v.Export)
			e.text("nfs_export_path", portal+":"+v.Export)
			e.text("smb_export_path", `\\`+portal+strings.ReplaceAll(strings.TrimPrefix(v.Export, "/export"), "/", `\`))
			e.number("additional_smb_export_paths_count", 0)
			e.yes("nfs_root_squash", v.Options["nfsrootsquash"] == "YES")
			e.yes("atime_update", v.Options["atimeupdate"] == "YES")
			e.text("mount_sync", "YES")
		}
		e.oldTime("created_at", v.Created)
		e.oldTime("modified_at", v.Modified)
	}
}

// deletedBehind removes a volume with all that depends on it, as no request could.
func (s *state) deletedBehind(v *Volume, now time.Time) {
	for _, sn := range s.snapshots.all() {
		if sn.Volume == v.ID {
			s.dropSnapshot(sn)
		}
	}
	if v = s.volumes.get(v.ID); v != nil {
		s.changeVolume(v, now, func(v *Volume) { v.Attachments = nil })
		s.dropVolume(s.volumes.get(v.ID))
	}
}
