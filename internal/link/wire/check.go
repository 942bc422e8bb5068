package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/katbox/katbox/internal/model/local"
	"github.com/katbox/katbox/internal/model/pools"
)

// errProtocol: the node sent what no daemon sends.
var errProtocol = errors.New("the node breaks the protocol")

func protocolError(format string, values ...any) error {
	return fmt.Errorf("%w: %w", errProtocol, fmt.Errorf(format, values...))
}

// CheckPools returns why a node cannot have such pools.
func CheckPools(all []local.Pool) error {
	if len(all) > MostPools {
		return protocolError("it has %d pools, at most %d are possible", len(all), MostPools)
	}
	known := map[string]bool{}
	for _, p := range all {
		if !pools.IsUUID(p.UUID) {
			return protocolError("a pool has no UUID but %.100q", p.UUID)
		}
		if known[p.UUID] {
			return protocolError("it has two pools with the UUID %s", p.UUID)
		}
		known[p.UUID] = true
		if p.Key != "" && !p.Key.Valid() {
			return protocolError("the key of pool %s is none", p.UUID)
		}
		for _, text := range []string{p.Class, p.Path, string(p.Backend), p.FSType, p.Failed} {
			if len(text) > mostText || !utf8.ValidString(text) {
				return protocolError("a text of pool %s is too long, or none", p.UUID)
			}
		}
		for _, bytes := range []int64{p.Total, p.Free, p.Provisioned} {
			if bytes < 0 || bytes > mostSize {
				return protocolError("pool %s has %d bytes", p.UUID, bytes)
			}
		}
	}
	return nil
}

// checkVolume returns why the answer about a volume of a pool cannot be this one.
func checkVolume(v local.Volume, pool, name string) error {
	switch {
	case v.Pool != pool || v.Name != name:
		return protocolError("it was asked about %s of pool %s, and answers about %.100q of %.100q", name, pool, v.Name, v.Pool)
	case !pools.IsID(name):
		return protocolError("a volume has the name %.100q", name)
	case v.Size < 0 || v.Size > mostSize:
		return protocolError("volume %s has %d bytes", name, v.Size)
	case len(v.Comment) > mostComment || !utf8.ValidString(v.Comment):
		return protocolError("the comment of volume %s is too long, or no text", name)
	case len(v.FSType) > mostText:
		return protocolError("the file system of volume %s is %.100q", name, v.FSType)
	}
	return checkSource(name, v.Source)
}

func checkSource(name string, s local.Source) error {
	if s.Snapshot != "" && !pools.IsID(s.Snapshot) || s.Volume != "" && !pools.IsID(s.Volume) {
		return protocolError("the source of volume %s is %.100q %.100q", name, s.Snapshot, s.Volume)
	}
	return nil
}

func checkSnapshot(s local.Snapshot, pool, name string) error {
	switch {
	case s.Pool != pool || s.Name != name:
		return protocolError("it was asked about %s of pool %s, and answers about %.100q of %.100q", name, pool, s.Name, s.Pool)
	case !pools.IsID(name) || !pools.IsID(s.Volume):
		return protocolError("a snapshot has the name %.100q, and is of volume %.100q", name, s.Volume)
	case s.Size < 0 || s.Size > mostSize:
		return protocolError("snapshot %s has %d bytes", name, s.Size)
	}
	return nil
}
