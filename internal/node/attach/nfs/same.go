package nfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/attach"
	"github.com/katbox/katbox/internal/node/mount"
)

// compare reports whether what is mounted is what is asked for: nil, attach.ErrNotOurs for another export or another
// file system, or volume.ErrConflict for other options. It looks at what the mount table shows: the kernel leaves out
// options that have their defaults, and may choose a smaller rsize and wsize.
func compare(there attach.Mount, source string, r request, readOnly bool) error {
	if there.Source != source || (there.FSType != "nfs4" && there.FSType != "nfs") || there.Root != "/" {
		return fmt.Errorf("%w: %w: %s of %s is mounted there", attach.ErrNotOurs, volume.ErrForeignMount, there.FSType, there.Source)
	}
	conflict := func(option string) error {
		return fmt.Errorf("%w: it is mounted there without %s", volume.ErrConflict, option)
	}
	switch {
	case there.ReadOnly && !readOnly:
		return conflict("rw")
	case !there.ReadOnly && readOnly:
		return conflict("ro")
	}
	for _, option := range r.generic {
		if name := option; mount.KnownFlag(name) && !slices.Contains([]string{"rw", "ro", "exec", "strictatime", "relatime"}, name) &&
			!slices.Contains(there.Flags, name) {
			return conflict(option)
		}
	}
	own := append(slices.Clone(r.own), "vers="+r.version)
	if r.proto != "" {
		own = append(own, "proto="+r.proto)
	}
	if r.clientAddress.IsValid() {
		own = append(own, "clientaddr="+r.clientAddress.String())
	}
	for _, option := range own {
		if !shows(there.Options, option) {
			return conflict(option)
		}
	}
	return nil
}

// shows reports whether options, as the mount table shows them, allow for an option.
func shows(options []string, option string) bool {
	name, value, hasValue := strings.Cut(option, "=")
	if !hasValue {
		return showsSwitch(options, name)
	}
	for _, there := range options {
		shown, is, _ := strings.Cut(there, "=")
		if shown != name {
			continue
		}
		if name == "rsize" || name == "wsize" {
			wanted, _ := strconv.ParseUint(value, 10, 64)
			got, err := strconv.ParseUint(is, 10, 64)
			return err == nil && got <= wanted
		}
		if name == "vers" && value == newest4 {
			return strings.HasPrefix(is, newest4+".")
		}
		return is == value || name == "lookupcache" && strings.HasPrefix(value, "pos") && strings.HasPrefix(is, "pos")
	}
	return true
}

// showsSwitch is shows for an option without a value. Of most pairs the kernel shows the one that says no.
func showsSwitch(options []string, name string) bool {
	switch name {
	case "hard", "soft", "softerr", "softreval":
		return slices.Contains(options, name)
	case "nosoftreval":
		return !slices.Contains(options, "softreval")
	}
	if strings.HasPrefix(name, "no") {
		return slices.Contains(options, name)
	}
	return !slices.Contains(options, "no"+name)
}
