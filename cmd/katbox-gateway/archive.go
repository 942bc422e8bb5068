package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	_ "golang.org/x/crypto/x509roots/fallback" // the image has no CAs, and the bucket may be a public one

	"github.com/katbox/katbox/internal/gateway/archived"
	"github.com/katbox/katbox/internal/gateway/bucket"
	"github.com/katbox/katbox/internal/gateway/uploads"
	"github.com/katbox/katbox/internal/model/duration"
)

const (
	// standardLifespan is how long an archive is kept, and leastLifespan the least: what is copied is not to end before the node's own.
	standardLifespan = "30d"
	leastLifespan    = time.Hour
)

// archiveOptions are the flags of the archive.
type archiveOptions struct {
	bucket, endpoint, region, credentials, ca, lifespan string
	// flags are those that define has defined.
	flags *pflag.FlagSet
}

func (o *archiveOptions) define(flags *pflag.FlagSet) {
	o.flags = flags
	flags.StringVar(&o.bucket, "archive-bucket", "",
		"bucket that nodes copy retained volumes to with --archive, and that their copies are read from; empty for no archive")
	flags.StringVar(&o.endpoint, "archive-endpoint", "",
		"URL of the store that has the bucket, which speaks S3; empty for AWS's in the region")
	flags.StringVar(&o.region, "archive-region", "us-east-1", "region of the bucket, as it is signed")
	flags.StringVar(&o.credentials, "archive-credentials", "",
		"directory with the files access-key-id and secret-access-key, and session-token if there is one, read again when they change; "+
			"empty for those that AWS gives the pod, by the role of its ServiceAccount")
	flags.StringVar(&o.ca, "archive-ca", "", "file with CAs for the store, beside the public ones")
	flags.StringVar(&o.lifespan, "archive-lifespan", standardLifespan, "how long a copy is kept, from when it is complete")
}

// check returns the first flag that is not acceptable, and why.
func (o *archiveOptions) check() error {
	if o.bucket == "" {
		for _, flag := range []string{"endpoint", "region", "credentials", "ca", "lifespan"} {
			if o.flags.Changed("archive-" + flag) {
				return fmt.Errorf("--archive-%s is of no use without --archive-bucket; leave one or the other out", flag)
			}
		}
		return nil
	}
	if lifespan, err := duration.Parse(o.lifespan); err != nil || lifespan < leastLifespan {
		return fmt.Errorf("--archive-lifespan %q is not a duration of %s or more; write it as 12h or 30d", o.lifespan, leastLifespan)
	}
	return nil
}

// startArchive prepares the archive, before nodes connect. A bucket that is away keeps nothing from starting.
func (i *instance) startArchive(ctx context.Context) error {
	o := i.o.archive
	if o.bucket == "" {
		return nil
	}
	i.counted.Archives()
	store, err := bucket.New(bucket.Config{Endpoint: o.endpoint, Region: o.region, Bucket: o.bucket, Credentials: o.credentials, CA: o.ca})
	if err != nil {
		return fmt.Errorf("--archive-bucket: %w", err)
	}
	i.onStop(func(context.Context) error { store.Close(); return nil })
	i.archive, err = archived.New(archived.Config{
		Bucket: store, Namespaces: i.namespaces, Metrics: i.counted, Log: i.log.WithName("archive"),
	})
	if err != nil {
		return err
	}
	lifespan, err := duration.Parse(o.lifespan)
	if err != nil {
		return err
	}
	i.uploads, err = uploads.New(uploads.Config{
		Bucket: store, Cluster: i.archive.Cluster, Owners: i.owners, Indexes: i.archive, Key: i.key, Lifespan: lifespan,
		Metrics: i.counted, Log: i.log.WithName("archive"),
	})
	if err != nil {
		return err
	}
	i.waits = append(i.waits, i.archive.Wait)
	i.archive.Start(ctx)
	return nil
}
