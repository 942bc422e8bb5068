package main

import (
	"github.com/katbox/katbox/soak/internal/check"
	"github.com/katbox/katbox/soak/internal/content"
	"github.com/katbox/katbox/soak/internal/workload"
)

// overfill is a pod that writes more than its volume may have. Of a volume that a fault befalls, or that
// its pod cannot write to, nothing is known.
func (s *scratch) overfill() {
	plan, v := s.volume.Plan, s.volume.Story
	if !plan.Tight || plan.Trouble != nil || v.ReadOnly {
		return
	}
	const bytes, inodes = workload.TightBytes, workload.TightInodes
	taken, err := content.Overfill(v.Target, content.Room{Bytes: bytes, Inodes: inodes})
	if err != nil {
		s.churn.failed(s.volume, err)
		return
	}
	v.Note("its pod could write %d bytes and %d inodes more", taken.Bytes, taken.Inodes)
	s.environment.report.Count.Overfilled.Add(1)
	s.environment.checker.Overfilled(v,
		check.Taken{What: "bytes", Amount: taken.Bytes, Limit: bytes, Least: bytes / workload.TightSpare},
		check.Taken{What: "inodes", Amount: taken.Inodes, Limit: inodes, Least: inodes / workload.TightSpare})
}
