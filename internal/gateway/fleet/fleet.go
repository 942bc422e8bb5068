package fleet

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
)

const (
	// nodeTime is how long a node may take for one page of a list, counted from when it is asked, and
	// listTime how long a list or a search may take in all.
	nodeTime = 2 * time.Second
	listTime = 5 * time.Second
	// archiveTime is how long a search in the archive may take, once the node has not answered with the volume.
	archiveTime = 10 * time.Second
	// busyPause is about how long it waits for a node that answers too many others.
	busyPause = 200 * time.Millisecond
	// parallel is how many nodes a list asks at the same time. A node that has not answered within
	// patience does not count: with the limit alone, some hundred silent nodes would take the time of
	// all others.
	parallel = 256
	patience = 500 * time.Millisecond
	// rounds is how often a list asks one node for one page. mostVolumes is how many volumes a round
	// after the first asks for in all: 10 MB, which 5,000 nodes send in a second. It asks for fewer where they
	// may take more than mostRound bytes.
	rounds      = 3
	mostVolumes = 40_000
	mostRound   = 64 << 20
	// leastAsked is how many nodes a page asks at least, if there are as many.
	leastAsked = 1000
	// standardLimit and mostLimit are how many entries a page holds, if the request does not say and at
	// most.
	standardLimit = 500
	mostLimit     = 5000
	// mostMissing is how many missing nodes are named.
	mostMissing = 20
)

// Config is what a Fleet needs.
type Config struct {
	Nodes      Nodes
	Namespaces Namespaces
	Owners     Owners
	// Archive may be nil.
	Archive Archive
	// Key seals what Continue says, so that no client can forge one. It has 32 bytes, and is the same
	// in all replicas: the next page may come from another one.
	Key []byte
	// Namespace is the gateway's own. Volumes whose namespace is not known are listed in it.
	Namespace string
	Log       logr.Logger
	// Dropped counts entries of nodes that were left out because they cannot be true. It may be nil.
	Dropped func(node string, entries int)
}

func (c Config) check() error {
	switch {
	case c.Nodes == nil:
		return errors.New("fleet: Config.Nodes is missing")
	case c.Namespaces == nil:
		return errors.New("fleet: Config.Namespaces is missing")
	case c.Owners == nil:
		return errors.New("fleet: Config.Owners is missing")
	case c.Namespace == "":
		return errors.New("fleet: Config.Namespace is missing")
	case len(c.Key) != KeySize:
		return fmt.Errorf("fleet: Config.Key has %d bytes, and needs %d", len(c.Key), KeySize)
	}
	return nil
}

// KeySize is how many bytes Config.Key has.
const KeySize = 32

// Fleet lists and finds retained volumes. Its methods may be called from several goroutines.
type Fleet struct {
	cfg Config
	// seal encrypts what Continue says.
	seal cipher.AEAD
	// least is leastAsked, and fewer in tests.
	least int
}

// New returns a Fleet.
func New(c Config) (*Fleet, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(c.Key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Fleet{cfg: c, seal: seal, least: leastAsked}, nil
}
