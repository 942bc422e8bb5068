package retained

import (
	"fmt"
	"strings"
	"time"

	"github.com/katbox/katbox/internal/model/volume"
)

// sector is the unit that file systems count in.
const sector = 512

var epoch = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func retained(id string, after, lifespan time.Duration) volume.Record {
	return volume.Record{
		ID:          volume.ID(id),
		Pod:         "pod",
		Phase:       volume.Retained,
		Unpublished: epoch.Add(after),
		Lifespan:    lifespan,
	}
}

func deleting(id string, after, lifespan time.Duration) volume.Record {
	r := retained(id, after, lifespan)
	r.Phase = volume.Deleting
	return r
}

// named returns the record of a volume with the names of a cluster, distinct of which are different.
func named(i, distinct int) volume.Record {
	r := volume.Record{
		Pod:       volume.PodUID(fmt.Sprintf("01234567-89ab-cdef-0123-%012x", i)),
		Namespace: fmt.Sprintf("team-%d", i%distinct), PodName: fmt.Sprintf("nightly-job-%016x-x7k2p", i),
		VolumeName: fmt.Sprintf("scratch-%d", i%distinct), ServiceAccount: "default", Published: epoch,
	}.Retain(epoch.Add(time.Duration(i)), time.Hour)
	r.ID = volume.KubeletID(r.Pod, r.VolumeName)
	return r
}

// owned returns the record of a volume as named does, whose pod is a Job's.
func owned(i, distinct int) volume.Record {
	r := named(i, distinct)
	job := strings.TrimSuffix(r.PodName, "-x7k2p")
	r.Owner = volume.Owner{
		Verdict: volume.Confirmed, NamespaceUID: fmt.Sprintf("76543210-89ab-cdef-0123-%012x", i%distinct),
		Kind: "Job", Name: job, UID: fmt.Sprintf("fedcba98-89ab-cdef-0123-%012x", i), Job: job, JobIndex: "17",
	}
	return r
}

// complete returns the record of a volume as owned does, with all that is known of a volume since
// pods may say how long it is kept: 300 different lifespans.
func complete(i, distinct int) volume.Record {
	r := owned(i, distinct)
	r.Lifespan = time.Duration(1+i%300) * time.Minute
	r.Terms = volume.Terms{Lifespan: r.Lifespan, LifespanSucceeded: r.Lifespan / 2, Limit: volume.Size{Bytes: 1 << 30}}
	r.Outcome = volume.Outcome(i / 300 % 4)
	r.Project = 1_258_291_200 + uint32(i)
	return r
}
