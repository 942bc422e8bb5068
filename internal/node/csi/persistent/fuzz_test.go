package persistent

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"

	"github.com/katbox/katbox/internal/model/pools"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/mount"
)

// capabilityOf makes a capability of fuzzed values: access 0 is a mount, 1 a block device, 2 neither, 3 no
// capability at all. Options are separated by semicolons.
func capabilityOf(access byte, mode int32, fsType, options string) *csi.VolumeCapability {
	if access == 3 {
		return nil
	}
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_Mode(mode)}}
	switch access {
	case 0:
		c.AccessType = mounted(0, fsType, strings.FieldsFunc(options, func(r rune) bool { return r == ';' })...).GetAccessType()
	case 1:
		c.AccessType = block(0).GetAccessType()
	}
	return c
}

// FuzzStaging looks for a stage that is accepted with another meaning, or with values that could become
// two options, two lines or two arguments.
func FuzzStaging(f *testing.F) {
	for mode := range int32(len(csi.VolumeCapability_AccessMode_Mode_name) + 1) {
		f.Add("pvc-1", stagingPath, "nfs", "10.0.0.1:/export/x", "", "", "0", "", byte(0), mode, "", "vers=4.1;ro")
		f.Add("pvc-1", stagingPath, "iscsi", "iqn.2011-04.com.x:y", "10.0.0.1:3260", "volume-00000001", "3", "ext4", byte(0), mode,
			"xfs", "noatime")
		f.Add("pvc-1", stagingPath, "iscsi", "iqn.2011-04.com.x:y", "[fd00::1]:3260", "volume-00000001", "3", "", byte(1), mode, "", "")
	}
	d := testDriver(f, &fakeVolumes{}, logr.Discard())
	f.Fuzz(func(
		t *testing.T, id, path, protocol, where, portal, serial, lun, contextType string, access byte, mode int32, fsType, options string,
	) {
		context := map[string]string{
			pools.KeyProtocol: protocol, pools.KeyExport: where, pools.KeyTarget: where, pools.KeyPortal: portal, pools.KeySerial: serial,
			pools.KeyLUN: lun, pools.KeyFSType: contextType,
		}
		req := &csi.NodeStageVolumeRequest{
			VolumeId: id, StagingTargetPath: path, PublishContext: context, VolumeCapability: capabilityOf(access, mode, fsType, options),
		}
		s, err := d.staging(req)
		if err != nil {
			checkRefusal(t, err)
			if s.Volume != "" || s.Path != "" || s.Attachment.Protocol != "" {
				t.Errorf("refused, but also returned: %+v", s)
			}
			return
		}
		checkID(t, s.Volume, id)
		checkBelow(t, d, path, s.Path)
		if s.Volume != s.Attachment.Volume || s.Attachment.Node != "node-1" {
			t.Errorf("the attachment is another volume's: %+v", s)
		}
		for _, text := range []string{s.Attachment.Export, s.Attachment.Target, s.Attachment.Portal, s.Attachment.Serial, s.FSType} {
			if strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
				t.Errorf("%q was accepted", text)
			}
		}
		checkOptions(t, s.Options)
		for _, option := range req.GetVolumeCapability().GetMount().GetMountFlags() {
			if kept := option != "ro" && option != "rw"; kept != slices.Contains(s.Options, option) || option == "ro" && !s.ReadOnly {
				t.Errorf("of the option %q, %q are kept, read-only %t", option, s.Options, s.ReadOnly)
			}
		}
		onNFS, block := protocol == "nfs", access == 1
		wantsType := !onNFS && !block
		if s.Block != block || onNFS && block || wantsType != slices.Contains([]string{"ext4", "xfs"}, s.FSType) || !wantsType && s.FSType != "" {
			t.Errorf("a volume over %s with access %d became %+v", protocol, access, s)
		}
	})
}

// FuzzNodePublication looks for a publish that is accepted though a path leads elsewhere, or with another meaning.
func FuzzNodePublication(f *testing.F) {
	for mode := range int32(len(csi.VolumeCapability_AccessMode_Mode_name) + 1) {
		f.Add("pvc-1", stagingPath, targetPath, byte(0), mode, "nodev;vers=4.1;ro", mode%2 == 0)
		f.Add("pvc-1", stagingPath, devicePath, byte(1), mode, "", mode%2 == 0)
	}
	d := testDriver(f, &fakeVolumes{}, logr.Discard())
	f.Fuzz(func(t *testing.T, id, staging, target string, access byte, mode int32, options string, readonly bool) {
		req := &csi.NodePublishVolumeRequest{
			VolumeId: id, StagingTargetPath: staging, TargetPath: target, Readonly: readonly,
			VolumeCapability: capabilityOf(access, mode, "", options),
		}
		p, err := d.publication(req)
		if err != nil {
			checkRefusal(t, err)
			if p.Volume != "" || p.Target != "" {
				t.Errorf("refused, but also returned: %+v", p)
			}
		} else {
			checkID(t, p.Volume, id)
			checkBelow(t, d, staging, p.Staging)
			checkBelow(t, d, target, p.Target)
			checkOptions(t, p.Options)
			for _, option := range p.Options {
				if !mount.KnownFlag(option) {
					t.Errorf("a bind mount gets the option %q", option)
				}
			}
			if readonly && !p.ReadOnly || p.Block != (access == 1) {
				t.Errorf("%+v of %v", p, req)
			}
		}
		if gotID, got, err := d.unpublication(&csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
			checkRefusal(t, err)
		} else {
			checkID(t, gotID, id)
			checkBelow(t, d, target, got)
		}
		if gotID, got, err := d.unstaging(&csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}); err != nil {
			checkRefusal(t, err)
		} else {
			checkID(t, gotID, id)
			checkBelow(t, d, staging, got)
		}
	})
}

// checkRefusal fails for an error that names no field, or that could forge a log line.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	known := []string{"volume_id", "target_path", "staging_target_path", "volume_path", "volume_capability", "publish_context"}
	if !slices.ContainsFunc(known, func(field string) bool { return strings.HasPrefix(err.Error(), field) }) {
		t.Errorf("%q names no field of the request", err)
	}
	if !errors.Is(err, volume.ErrInvalid) && !errors.Is(err, volume.ErrNotFound) {
		t.Errorf("%v is neither an invalid request nor an unknown volume", err)
	}
	if text := err.Error(); strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
		t.Errorf("the error is not one plain line: %q", text)
	}
}

// checkID fails for an ID that is not a plain name of a file, or not the one that was sent.
func checkID(t *testing.T, got, sent string) {
	t.Helper()
	if got != sent || filepath.Base(got) != got || got[0] == '.' || strings.Contains(got, "\x00") || len(got) > 253 {
		t.Errorf("ID %q of %q", got, sent)
	}
}

// checkBelow fails for a path that is not below one of the kubelet's directories.
func checkBelow(t *testing.T, d *Driver, sent, got string) {
	t.Helper()
	below := func(dir string) bool {
		rel, err := filepath.Rel(dir, got)
		return err == nil && filepath.IsLocal(rel) && rel != "."
	}
	if !below(d.podsDir) && !below(d.pluginsDir) || got != filepath.Clean(got) {
		t.Errorf("the path %q became %q, which is not below the kubelet's directories", sent, got)
	}
	if slices.Contains(strings.Split(sent, "/"), "..") || strings.Contains(got, "\x00") || len(got) > 4095 {
		t.Errorf("the path %q was accepted", sent)
	}
}

// checkOptions fails for mount options that would be others than those that were sent.
func checkOptions(t *testing.T, options []string) {
	t.Helper()
	for _, option := range options {
		if option == "" || strings.ContainsAny(option, ",\n\x00") || strings.ContainsFunc(option, unicode.IsControl) {
			t.Errorf("the option %q was accepted", option)
		}
	}
}
