package volume

import "time"

// LogsName is the name of the volume that has what the containers of a pod printed. The dot keeps it apart from the
// volumes in the spec of a pod.
const LogsName = "katbox.logs"

// LogsID is the ID of that volume.
func LogsID(pod PodUID) ID { return KubeletID(pod, LogsName) }

// IsLogs reports whether the record is that of the logs of a pod.
func (r *Record) IsLogs() bool { return r.VolumeName == LogsName && r.ID == LogsID(r.Pod) }

// LogsAnew returns the record of logs whose content is another than that of which the archive may have a copy, retained at that
// time: the gateway knows a stale copy by being older than this.
func (r Record) LogsAnew(retained time.Time) Record {
	r.ArchivedUntil = time.Time{}
	if least := retained.Add(time.Second).Truncate(time.Second); r.Published.Before(least) { // it is kept in whole seconds
		r.Published = least
	}
	return r
}

// LogsOf returns the record of the logs of a pod, by that of one of its volumes: they are promised what that one was,
// except for what concerns its files.
func LogsOf(r Record) Record {
	r.ID, r.VolumeName, r.Phase, r.Targets = LogsID(r.Pod), LogsName, Publishing, nil
	r.Terms = Terms{
		Lifespan: r.Terms.Lifespan, LifespanSucceeded: r.Terms.LifespanSucceeded, Retain: r.Terms.Retain, Archive: r.Terms.Archive,
	}
	r.ArchivedUntil = time.Time{}
	r.Unpublished, r.Lifespan, r.Hold, r.Project, r.Attach = time.Time{}, 0, Hold{}, 0, Place{}
	return r
}
