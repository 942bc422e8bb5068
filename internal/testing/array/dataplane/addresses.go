package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// void is a network device that loses what it is given.
const void = "katbox-void"

// answerAt makes the machine answer at addresses, and no more at those that were set before. What is
// sent to them gets lost instead, if silent. Addresses that the machine has by itself stay as they are.
func (k *Kernel) answerAt(portals []netip.Addr, silent bool) error {
	set, err := k.addresses()
	if err != nil {
		return err
	}
	for _, a := range set {
		if !slices.Contains(portals, a) {
			if err := errors.Join(forget(a), listenNoMore(a)); err != nil {
				return err
			}
		}
	}
	var ours []netip.Addr
	for _, a := range portals {
		if slices.Contains(set, a) || !own(a) {
			ours = append(ours, a)
		}
	}
	// Noted before the first is set, so that a program that is killed here leaves nothing behind.
	if err := k.saveAddresses(ours); err != nil {
		return err
	}
	for _, a := range ours {
		if silent {
			err = errors.Join(listenNoMore(a), lose(a))
		} else {
			err = errors.Join(forget(a), k.listenAt(a))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) addressFile() string { return filepath.Join(k.dir, "addresses.json") }

// addresses returns those that this plane has set.
func (k *Kernel) addresses() (set []netip.Addr, err error) {
	data, err := os.ReadFile(k.addressFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return set, json.Unmarshal(data, &set)
}

func (k *Kernel) saveAddresses(set []netip.Addr) error {
	data, err := json.Marshal(set)
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.addressFile()+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(k.addressFile()+".new", k.addressFile())
}

// own reports whether the machine has an address; all of 127.0.0.0/8 are its own.
func own(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	out, err := run("ip", "-oneline", "address", "show", "to", single(a))
	return err == nil && out != ""
}

func single(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }

// listenAt makes the machine answer at an address. The route with the source comes first: a client connects
// again in the moment in which the address is there, and from another address it would be a stranger.
func (k *Kernel) listenAt(a netip.Addr) error {
	if k.source.IsValid() && k.source.Is4() == a.Is4() {
		_, err := run("ip", "route", "replace", "local", single(a), "dev", "lo", "table", "local", "src", k.source.String())
		if err != nil {
			return err
		}
	}
	_, err := run("ip", "address", "replace", single(a), "dev", "lo")
	return err
}

// listenNoMore takes an address away from the machine.
func listenNoMore(a netip.Addr) error {
	if !own(a) {
		return nil
	}
	if _, err := run("ip", "address", "delete", single(a), "dev", "lo"); err != nil {
		return err
	}
	// The route that the kernel has made goes with the address; that with a source stays.
	out, err := run("ip", "route", "show", "table", "local", single(a))
	if err != nil || out == "" {
		return err
	}
	_, err = run("ip", "route", "delete", "local", single(a), "table", "local")
	return err
}

// lose sends what goes to an address into the void.
func lose(a netip.Addr) error {
	if _, err := run("ip", "link", "show", void); err != nil {
		if _, err := run("ip", "link", "add", void, "type", "dummy"); err != nil {
			return fmt.Errorf("the kernel's module dummy may be missing: %w", err)
		}
	}
	if _, err := run("ip", "link", "set", void, "up"); err != nil {
		return err
	}
	_, err := run("ip", "route", "replace", single(a), "dev", void)
	return err
}

// forget undoes lose.
func forget(a netip.Addr) error {
	out, err := run("ip", "route", "show", single(a))
	if err != nil || out == "" {
		return err
	}
	_, err = run("ip", "route", "delete", single(a), "dev", void)
	return err
}
