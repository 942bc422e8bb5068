package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/lib/edge"
	"github.com/katbox/katbox/internal/lib/kubelet"
	"github.com/katbox/katbox/internal/lib/socket"
	"github.com/katbox/katbox/internal/node/kubeapi"
)

// stagedDir is where the records of staged volumes are, beside the socket of --array-endpoint: a
// directory of the node that the kubelet leaves alone, and not on the disk that volumes may fill.
const stagedDir = "staged"

// arrayOptions are the flags of the volumes of arrays.
type arrayOptions struct {
	endpoint        string
	kubeletPath     string
	driverName      string
	maxVolumes      int64
	storageNetwork  string
	nodeAddresses   string
	hostRoot        string
	chapNamespace   string
	kubeAPI         string
	kubeCredentials string
}

func (o *arrayOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.endpoint, "array-endpoint", "",
		"CSI socket of the driver for volumes of arrays; the directory staged beside it has the records of staged volumes; "+
			"empty for no such driver")
	flags.StringVar(&o.kubeletPath, "array-kubelet-registration-path", "",
		"path of that socket as the kubelet sees it; empty if it is the one of --array-endpoint")
	flags.StringVar(&o.driverName, "array-drivername", "array.csi.katbox.io", "name of that driver, as in its CSIDriver object")
	flags.Int64Var(&o.maxVolumes, "array-max-volumes", 0, "how many volumes of arrays may be attached to the node; 0 for no limit")
	flags.StringVar(&o.storageNetwork, "storage-network", "",
		"CIDR of the network in which the node reaches the arrays, such as 10.9.0.0/16; empty if it is that of the node's InternalIP")
	flags.StringVar(&o.nodeAddresses, "node-addresses", "",
		"the node's addresses in Kubernetes, several separated by commas, its InternalIP first; the downward API has them in status.hostIPs")
	flags.StringVar(&o.hostRoot, "host-root", "",
		"where the node's root directory is in the container: iscsiadm, mkfs, fsck and blkid are the node's own, called by chroot; "+
			"empty outside of a container")
	flags.StringVar(&o.chapNamespace, "chap-namespace", "katbox-chap",
		"namespace of the Secrets with which nodes log in to arrays, and of nothing else")
	flags.StringVar(&o.kubeAPI, "kube-api", "", "URL of the API server; empty for the one that Kubernetes gives to pods")
	flags.StringVar(&o.kubeCredentials, "kube-credentials", kubeapi.Credentials,
		"directory with the token and the CA of the pod's ServiceAccount, for --kube-api")
}

// serves reports whether the daemon serves volumes of arrays.
func (o arrayOptions) serves() bool { return o.endpoint != "" }

// check returns the first of these flags that is not acceptable beside the others, and why.
func (o arrayOptions) check(all options) error {
	if !o.serves() {
		for _, given := range []struct {
			flag string
			is   bool
		}{
			{"array-kubelet-registration-path", o.kubeletPath != ""}, {"array-max-volumes", o.maxVolumes != 0},
			{"storage-network", o.storageNetwork != ""},
		} {
			if given.is {
				return fmt.Errorf("--%s is of no use without --array-endpoint", given.flag)
			}
		}
		return nil
	}
	switch {
	case o.maxVolumes < 0:
		return fmt.Errorf("--array-max-volumes %d is negative", o.maxVolumes)
	case o.driverName == all.driverName:
		return fmt.Errorf("--array-drivername and --drivername are both %s: the kubelet needs two names", o.driverName)
	case o.storageNetwork == "" && o.nodeAddresses == "":
		return errors.New("--array-endpoint needs --node-addresses or --storage-network: arrays have to know the node's address")
	case o.hostRoot != "" && !filepath.IsAbs(o.hostRoot):
		return fmt.Errorf("--host-root %q is not an absolute path", o.hostRoot)
	case !filepath.IsAbs(o.kubeCredentials):
		return fmt.Errorf("--kube-credentials %q is not an absolute path", o.kubeCredentials)
	}
	path, notASocket := socket.Path(o.endpoint)
	if first, err := socket.Path(all.endpoint); err == nil && notASocket == nil && filepath.Clean(first) == filepath.Clean(path) {
		return fmt.Errorf("--array-endpoint and --endpoint are the same socket %s", path)
	}
	_, badNetwork := o.network()
	_, badAddress := o.addresses()
	_, badCluster := o.cluster()
	registers := all.registrationDir != ""
	registrar := o.registrarConfig(all)
	for _, checked := range []struct {
		flag string
		used bool
		err  error
	}{
		{"array-endpoint", true, notASocket},
		{"array-drivername", true, edge.CheckName(o.driverName)},
		{"storage-network", true, badNetwork},
		{"node-addresses", true, badAddress},
		{"array-drivername", registers, registrar.CheckDir()},
		{"array-kubelet-registration-path", registers, registrar.CheckEndpoint()},
		{"kube-api", true, badCluster},
	} {
		if checked.used && checked.err != nil {
			return fmt.Errorf("--%s: %w", checked.flag, checked.err)
		}
	}
	return nil
}

// network reads --storage-network; the zero Prefix if it is empty.
func (o arrayOptions) network() (netip.Prefix, error) {
	if o.storageNetwork == "" {
		return netip.Prefix{}, nil
	}
	network, err := netip.ParsePrefix(o.storageNetwork)
	if err != nil {
		return network, fmt.Errorf("%q is not a CIDR such as 10.9.0.0/16", o.storageNetwork)
	}
	return network.Masked(), nil
}

// addresses reads --node-addresses.
func (o arrayOptions) addresses() (all []netip.Addr, err error) {
	if o.nodeAddresses == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(o.nodeAddresses, ",") {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an IP address", text)
		}
		all = append(all, address)
	}
	return all, nil
}

// cluster returns the client of the API server, which asks nothing yet.
func (o arrayOptions) cluster() (*kubeapi.Client, error) {
	server := o.kubeAPI
	if server == "" {
		var err error
		if server, err = kubeapi.InCluster(os.Getenv); err != nil {
			return nil, err
		}
	}
	return kubeapi.New(kubeapi.Config{Server: server, Credentials: o.kubeCredentials, CHAPNamespace: o.chapNamespace})
}

// registrarConfig is for endpoints that were checked already.
func (o arrayOptions) registrarConfig(all options) kubelet.RegistrarConfig {
	endpoint, _ := socket.Path(o.endpoint)
	return kubelet.RegistrarConfig{Dir: all.registrationDir, Name: o.driverName, Endpoint: cmp.Or(o.kubeletPath, endpoint)}
}

// onNode reports whether a path of the mount table is one of the node as this process sees it, and not a
// copy below --host-root: each mount of the kubelet's directories appears there once more.
func (o arrayOptions) onNode(path string) bool {
	return o.hostRoot == "" || filepath.Clean(o.hostRoot) == "/" || !below(o.hostRoot, path)
}
