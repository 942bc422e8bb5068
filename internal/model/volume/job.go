package volume

import (
	"regexp"
	"strings"
)

var (
	// generated is the end of a name that the API server has made unique.
	generated = regexp.MustCompile(`-[a-z0-9]{5}$`)
	// ofIndex is the number before it: the index of the pod of an indexed Job, or when the CronJob was
	// due that made the Job.
	ofIndex = regexp.MustCompile(`-[0-9]+$`)
	// ofTemplate is what stands there in the pods of a ReplicaSet: the hash of a template, in the digits
	// that Kubernetes writes it with.
	ofTemplate = regexp.MustCompile(`-[4-9bcdf]{8,10}$`)
)

// GuessJob returns the Job that a pod may be of, by the pod's name alone; empty if it hardly is one.
func GuessJob(pod string) string {
	job := generated.ReplaceAllString(pod, "")
	if job == pod || job == "" || ofTemplate.MatchString(job) {
		return ""
	}
	return job
}

// MayBeOf reports whether a pod may be of a Job, or of a Job that the CronJob of that name made, by
// the pod's name alone.
func MayBeOf(pod, job string) bool {
	guess := GuessJob(pod)
	return job != "" && guess != "" && (guess == job || strings.HasPrefix(guess, job) && ofIndex.ReplaceAllString(guess, "") == job)
}

// OfJob reports whether the volume's pod is of a Job: as its owner says, or by its name if the owner
// is not known.
func (r Record) OfJob(job string) bool {
	if r.Owner.Verdict == Unasked {
		return MayBeOf(r.PodName, job)
	}
	return r.Owner.Job == job
}
