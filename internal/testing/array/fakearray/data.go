package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/katbox/katbox/internal/testing/array/dataplane"
	"github.com/katbox/katbox/internal/testing/array/fakevpsa"
)

// data are the flags of the data plane.
type data struct {
	plane, dir, portals, source string
	numbers                     bool
}

func (d *data) define(set *flag.FlagSet) {
	set.StringVar(&d.plane, "data-plane", "none",
		"what has the data: none, or kernel (iSCSI and NFS of this machine, which should be a virtual one)")
	set.StringVar(&d.dir, "data-dir", "",
		"directory for the data, on a file system with reflinks; the state is there too, unless --state is set")
	set.StringVar(&d.portals, "portal", "", "addresses of both controllers for the data, with a comma; one is that of both")
	set.StringVar(&d.source, "source-address", "",
		"address from which clients on this machine are to come, as the server record of its node has it")
	set.BoolVar(&d.numbers, "disk-numbers", false,
		"disks have a number as their serial number, as SCST gives them one, and not the volume's ID")
}

// check refuses flags that do not fit, and fills in the file of the state.
func (d *data) check(f *flags) error {
	switch d.plane {
	case "none":
		if d.dir != "" || d.portals != "" || d.source != "" || d.numbers {
			return errors.New("--data-dir, --portal, --source-address and --disk-numbers need --data-plane kernel")
		}
		return nil
	case "kernel":
	default:
		return fmt.Errorf("--data-plane is %q, neither none nor kernel", d.plane)
	}
	switch {
	case d.dir == "" || d.portals == "":
		return errors.New("--data-plane kernel needs --data-dir and --portal")
	case f.arrays != 1:
		return errors.New("--data-plane kernel serves one array, see --arrays")
	case f.state == "":
		f.state = filepath.Join(d.dir, "state.json")
	}
	return nil
}

// apply gives an array its data plane.
func (d *data) apply(o *fakevpsa.Options) error {
	if d.plane == "none" {
		return nil
	}
	first, second, two := strings.Cut(d.portals, ",")
	if !two {
		second = first
	}
	o.Portals = [2]string{strings.TrimSpace(first), strings.TrimSpace(second)}
	c := dataplane.Config{Dir: d.dir, Numbers: d.numbers}
	var err error
	if d.source != "" {
		if c.Source, err = netip.ParseAddr(d.source); err != nil {
			return fmt.Errorf("--source-address: %w", err)
		}
	}
	plane, err := dataplane.NewKernel(c)
	if err != nil {
		return err
	}
	o.Plane = plane
	return nil
}
