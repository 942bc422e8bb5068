//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// request is one that the API server has answered, as its audit log has it.
type request struct {
	Stage, Verb, UserAgent                   string
	RequestReceivedTimestamp, StageTimestamp time.Time
	ObjectRef                                struct{ Name, UID, Resource, Subresource string }
}

// by names who has sent it: a program, or a controller of the controller manager.
func (r request) by() string {
	if _, controller, found := strings.Cut(r.UserAgent, "system:serviceaccount:kube-system:"); found {
		return controller
	}
	program, _, _ := strings.Cut(r.UserAgent, "/")
	return program
}

// what names what it does to which kind of object.
func (r request) what() string {
	if r.ObjectRef.Subresource != "" {
		return r.Verb + " " + r.ObjectRef.Resource + "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + r.ObjectRef.Resource
}

// answeredSince visits the requests since a moment, in the order of their answers.
func (p *poolsCluster) answeredSince(began time.Time, visit func(request)) {
	p.t.Helper()
	for _, name := range p.auditLogs() {
		if err := answeredIn(name, began, visit); err != nil {
			p.t.Fatal(err)
		}
	}
}

// auditLogs are the files of the audit log, the oldest first: the API server begins another one after 100 MB.
func (p *poolsCluster) auditLogs() []string {
	p.t.Helper()
	logs, err := filepath.Glob(filepath.Join(p.state, "logs", "audit*.log")) // "audit.log" is the newest, and sorted last
	if err != nil {
		p.t.Fatal(err)
	}
	return logs
}

func answeredIn(name string, began time.Time, visit func(request)) error {
	log, err := os.Open(name)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Stage != "ResponseComplete" || r.RequestReceivedTimestamp.Before(began) {
			continue // the last line may be half written
		}
		visit(r)
	}
	return lines.Err()
}

// turn is what the controller manager's binder does for one claim while all others wait: it has one worker for claims and
// one for PersistentVolumes, and no flag gives it more.
type turn struct{ first, last string }

var (
	binding   = turn{"update persistentvolumes/status", "update persistentvolumeclaims/status"}
	releasing = turn{"get persistentvolumeclaims", "update persistentvolumes/status"}
)

// binder is the controller of the controller manager that binds claims.
const binder = "persistent-volume-binder"

// stepsSince says when each request about a claim was received, on average, from the first one on, and how long the
// binder's turn lasts.
func (p *poolsCluster) stepsSince(began time.Time, one turn) (steps string, turnTakes time.Duration) {
	p.t.Helper()
	claims, ofVolume := map[string][]request{}, map[string]string{}
	var volumes []request
	p.answeredSince(began, func(r request) {
		switch r.ObjectRef.Resource {
		case "persistentvolumeclaims":
			if name := r.ObjectRef.Name; strings.HasPrefix(name, "c-") {
				claims[name] = append(claims[name], r)
				if r.ObjectRef.UID != "" {
					ofVolume["pvc-"+r.ObjectRef.UID] = name
				}
			}
		case "persistentvolumes", "poolvolumes":
			volumes = append(volumes, r)
		}
	})
	for _, r := range volumes {
		if name, ok := ofVolume[r.ObjectRef.Name]; ok {
			claims[name] = append(claims[name], r)
		}
	}
	var sum struct {
		turns int
		took  time.Duration
	}
	at, times := map[string]time.Duration{}, map[string]int{}
	for _, all := range claims {
		slices.SortFunc(all, func(a, b request) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
		var turnBegan time.Time
		seen := map[string]int{}
		for _, r := range all {
			step := r.by() + " " + r.what()
			if seen[step]++; seen[step] > 1 {
				step += fmt.Sprintf(" (%d)", seen[step])
			}
			at[step] += r.RequestReceivedTimestamp.Sub(all[0].RequestReceivedTimestamp)
			times[step]++
			if r.by() != binder {
				continue
			}
			switch r.what() {
			case one.first:
				turnBegan = r.RequestReceivedTimestamp
			case one.last:
				if !turnBegan.IsZero() {
					sum.turns++
					sum.took += r.StageTimestamp.Sub(turnBegan)
					turnBegan = time.Time{}
				}
			}
		}
	}
	mean := map[string]time.Duration{}
	for step, total := range at {
		if 10*times[step] >= len(claims) {
			mean[step] = total / time.Duration(times[step])
		}
	}
	sorted := largest(mean)
	slices.Reverse(sorted)
	var words []string
	for _, step := range sorted {
		words = append(words, fmt.Sprintf("%s at %d ms", step, mean[step].Milliseconds()))
	}
	return strings.Join(words, "; "), sum.took / time.Duration(max(sum.turns, 1))
}
