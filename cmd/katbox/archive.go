package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no CAs, and the bucket may be a public one

	"github.com/katbox/katbox/actors"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/duration"
	"github.com/katbox/katbox/internal/model/volume"
	"github.com/katbox/katbox/internal/node/archiver"
	"github.com/katbox/katbox/internal/node/handlers"
	"github.com/katbox/katbox/internal/node/policy"
	"github.com/katbox/katbox/internal/node/uplink"
)

const (
	// archiveTimeout is how long volumes of failures are still archived when the daemon stops. The kubelet is answered meanwhile.
	archiveTimeout = 8 * time.Second
	// leastArchiveRate is the lowest --archive-rate that is a limit.
	leastArchiveRate = 64 << 10
)

// archiveOptions are the flags about copies of retained volumes.
type archiveOptions struct {
	what, rate, max, ca string
	insecure            bool
}

func (o *archiveOptions) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&o.what, "archive", volume.ArchiveNever.String(),
		"which retained volumes are copied to the bucket of the gateway: Never, OnFailure (those of pods that did not succeed) or Always; "+
			"pods and --policy-file may choose less, and with Never nothing is copied")
	flags.StringVar(&o.rate, "archive-rate", "50Mi",
		"how many bytes of retained volumes are read in a second to archive them, a quantity; 0 for no limit")
	flags.StringVar(&o.max, "archive-max", "10Gi", "how large a volume may be that is archived, a quantity; 0 for up to 1Ti")
	flags.StringVar(&o.ca, "archive-ca", "",
		"file with certificates of the CA that signs the bucket's, beside public ones; empty for none")
	flags.BoolVar(&o.insecure, "archive-insecure", false, "let the bucket be reached without TLS, for tests")
}

// policy is --archive, which was checked.
func (o archiveOptions) policy() volume.Archive {
	what, _ := volume.ParseArchive(o.what)
	return what
}

func (o archiveOptions) on() bool { return o.policy() != volume.ArchiveNever }

// check returns which flag is not acceptable.
func (o archiveOptions) check(gateway string) error {
	_, known := volume.ParseArchive(o.what)
	rate, badRate := policy.ParseQuantity(o.rate)
	_, badMax := policy.ParseQuantity(o.max)
	switch {
	case !known:
		return fmt.Errorf("--archive %q is neither Never, OnFailure nor Always", o.what)
	case badRate != nil:
		return fmt.Errorf("--archive-rate %w", badRate)
	case rate != 0 && rate < leastArchiveRate:
		return fmt.Errorf("--archive-rate %q is less than 64Ki, and not 0", o.rate)
	case badMax != nil:
		return fmt.Errorf("--archive-max %w", badMax)
	case o.ca != "" && !filepath.IsAbs(o.ca):
		return fmt.Errorf("--archive-ca %q is not an absolute path", o.ca)
	case o.on() && gateway == "":
		return errors.New("--archive needs --gateway: the gateway signs what is copied")
	}
	return nil
}

// reportArchive writes what waits to be archived.
func (i *instance) reportArchive(_ context.Context, w io.Writer) error {
	a := i.archiver.Load()
	if a == nil {
		_, err := fmt.Fprintln(w, "nothing is archived: --archive=Never")
		return err
	}
	waiting := a.Waiting()
	fmt.Fprintf(w, "volumes   %d wait\n", waiting.Volumes)
	if waiting.Volumes > 0 {
		fmt.Fprintf(w, "bytes     %d wait\noldest    retained %s\n", waiting.Bytes, duration.When(waiting.Oldest))
	}
	unanswered, denied := a.Unconfirmed()
	if unanswered > 0 {
		fmt.Fprintf(w, "left out  %d, since no gateway has said whose they are\n", unanswered)
	}
	if denied > 0 {
		fmt.Fprintf(w, "left out  %d, since the API server knew no such pod\n", denied)
	}
	if reason := a.Failing(); reason != "" {
		fmt.Fprintf(w, "failing   %s\n", reason)
	}
	return nil
}

// startArchive begins to archive retained volumes, if any are to be. What it returns is for the connections to gateways, and
// the function ends it.
func (i *instance) startArchive(config *uplink.Config) (stop func(context.Context) error, err error) {
	o := i.o.archive
	if !o.on() {
		return func(context.Context) error { return nil }, nil
	}
	client, err := archiver.NewClient(o.ca)
	if err != nil {
		return nil, fmt.Errorf("--archive-ca: %w", err)
	}
	rate, _ := policy.ParseQuantity(o.rate)
	most, _ := policy.ParseQuantity(o.max)
	config.Uploads = uplink.NewUploads()
	a, err := archiver.Start(archiver.Config{
		Volumes: i.node, Gateway: config.Uploads, Client: client, Insecure: o.insecure, Rate: rate, Max: most,
		Describe:    func(d volume.Description) api.Volume { return handlers.Describe(i.o.nodeID, d) },
		LowPriority: actors.LowPriority, Metrics: i.counted, Log: i.log,
	})
	if err != nil {
		return nil, err
	}
	config.Archive = a.Waiting
	i.archiver.Store(a)
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, archiveTimeout)
		defer cancel()
		a.Stop(ctx)
		return nil
	}, nil
}
