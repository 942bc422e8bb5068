package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	actorslocal "github.com/katbox/katbox/actors/local"
	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
)

// localOptions are the flags of the pools on the node's own disks.
type localOptions struct {
	pools       []string
	endpoint    string
	kubeletPath string
	driverName  string
	maxVolumes  int64
	controller  controllerOptions
}

func (o *localOptions) addTo(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.pools, "local-pool", nil,
		placeForm+": a directory of the node in which persistent volumes are made, and the PoolClass that it is in; "+
			"NAME is projectQuota, image, btrfs or auto, which takes what fits the disk; on-root-disk makes a pool also where no disk is mounted; "+
			"may be given several times; none for no such volumes")
	flags.StringVar(&o.endpoint, "local-endpoint", "",
		"CSI socket of the driver for volumes in the directories of --local-pool; the file "+knownName+" beside it says which pool is in which")
	flags.StringVar(&o.kubeletPath, "local-kubelet-registration-path", "",
		"path of that socket as the kubelet sees it; empty if it is the one of --local-endpoint")
	flags.StringVar(&o.driverName, "local-drivername", "local.csi.katbox.io", "name of that driver, as in its CSIDriver object")
	flags.Int64Var(&o.maxVolumes, "local-max-volumes", 0, "how many such volumes pods of the node may use; 0 for no limit")
	o.controller.addTo(flags)
}

// serves reports whether the daemon serves volumes on the node's own disks.
func (o localOptions) serves() bool { return len(o.pools) > 0 }

// places reads --local-pool.
func (o localOptions) places() (all []actorslocal.Place, err error) {
	for _, text := range o.pools {
		place, err := parsePlace(text)
		if err != nil {
			return nil, fmt.Errorf("%q %w", text, err)
		}
		for _, other := range all {
			if below(other.Path, place.Path) || below(place.Path, other.Path) {
				return nil, fmt.Errorf("%q is the directory of another pool, or one contains the other: %s", text, other.Path)
			}
		}
		all = append(all, place)
	}
	return all, nil
}

// placeForm is what --local-pool looks like.
const placeForm = "CLASS=PATH[,backend=NAME][,on-root-disk]"

// parsePlace reads what has the form of [placeForm].
func parsePlace(text string) (p actorslocal.Place, err error) {
	class, rest, ok := strings.Cut(text, "=")
	if !ok {
		return p, errors.New("is not " + placeForm)
	}
	options := strings.Split(rest, ",")
	path := options[0]
	p = actorslocal.Place{Class: class, Path: filepath.Clean(path), Backend: local.Auto}
	for _, option := range options[1:] {
		name, ok := strings.CutPrefix(option, "backend=")
		known := []local.Backend{local.Auto, local.ProjectQuota, local.Image, local.Btrfs}
		switch {
		case option == "on-root-disk":
			p.OnRootDisk = true
		case ok && slices.Contains(known, local.Backend(name)):
			p.Backend = local.Backend(name)
		default:
			return p, fmt.Errorf("has the option %q: give backend=projectQuota, backend=image, backend=btrfs or backend=auto, and on-root-disk",
				option)
		}
	}
	switch {
	case !pools.IsID(class):
		return p, fmt.Errorf("has the class %q, which is no name of a PoolClass", class)
	case !filepath.IsAbs(path), slices.Contains(strings.Split(path, "/"), ".."):
		return p, fmt.Errorf("has the path %q, which is not absolute or contains \"..\"", path)
	case p.Path == "/":
		return p, errors.New("has the path /, which cannot be a pool")
	}
	return p, nil
}

// check returns the first of these flags that is not acceptable beside the others, and why.
func (o localOptions) check(all options) error {
	if err := o.controller.check(o.serves()); err != nil {
		return err
	}
	if !o.serves() {
		for flag, given := range map[string]bool{
			"local-endpoint": o.endpoint != "", "local-kubelet-registration-path": o.kubeletPath != "", "local-max-volumes": o.maxVolumes != 0,
		} {
			if given {
				return fmt.Errorf("--%s is of no use without --local-pool", flag)
			}
		}
		return nil
	}
	places, err := o.places()
	if err != nil {
		return fmt.Errorf("--local-pool: %w", err)
	}
	for _, place := range places {
		for flag, dir := range map[string]string{"--workdir": all.workdir, "the pods directory of --kubelet-dir": all.podsDir()} {
			if below(dir, place.Path) || below(place.Path, dir) {
				return fmt.Errorf("--local-pool %s and %s %s contain one another", place.Path, flag, dir)
			}
		}
	}
	switch {
	case o.endpoint == "":
		return errors.New("--local-pool needs --local-endpoint, the socket of its driver")
	case o.maxVolumes < 0:
		return fmt.Errorf("--local-max-volumes %d is negative", o.maxVolumes)
	case all.arrays.hostRoot != "" && !filepath.IsAbs(all.arrays.hostRoot):
		return fmt.Errorf("--host-root %q is not an absolute path", all.arrays.hostRoot)
	}
	for flag, name := range map[string]string{"drivername": all.driverName, "array-drivername": all.arrays.driverName} {
		if o.driverName == name && (flag == "drivername" || all.arrays.serves()) {
			return fmt.Errorf("--local-drivername and --%s are both %s: the kubelet needs two names", flag, name)
		}
	}
	path, notASocket := socket.Path(o.endpoint)
	for flag, endpoint := range map[string]string{"endpoint": all.endpoint, "array-endpoint": all.arrays.endpoint} {
		other, err := socket.Path(endpoint)
		if err == nil && notASocket == nil && filepath.Clean(other) == filepath.Clean(path) {
			return fmt.Errorf("--local-endpoint and --%s are the same socket %s", flag, path)
		}
	}
	registers := all.registrationDir != ""
	registrar := o.registrarConfig(all)
	for _, checked := range []struct {
		flag string
		used bool
		err  error
	}{
		{"local-endpoint", true, notASocket},
		{"local-drivername", true, edge.CheckName(o.driverName)},
		{"local-drivername", registers, registrar.CheckDir()},
		{"local-kubelet-registration-path", registers, registrar.CheckEndpoint()},
	} {
		if checked.used && checked.err != nil {
			return fmt.Errorf("--%s: %w", checked.flag, checked.err)
		}
	}
	return nil
}

// registrarConfig is for endpoints that were checked already.
func (o localOptions) registrarConfig(all options) kubelet.RegistrarConfig {
	endpoint, _ := socket.Path(o.endpoint)
	return kubelet.RegistrarConfig{Dir: all.registrationDir, Name: o.driverName, Endpoint: cmp.Or(o.kubeletPath, endpoint)}
}

// threads returns how many of the process' threads volumes on the node's disks may count on; 0 sets no limit.
func (o localOptions) threads(all int) int {
	if !o.serves() {
		return 0
	}
	return all / 4
}
