package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/katbox/katbox/soak/internal/workload"
)

// printPlan prints what a run would do: a line for each pod, volume and fault.
func printPlan(out io.Writer, p workload.Plan) error {
	w := bufio.NewWriter(out)
	for index := range p.Workload().Pods {
		pod := p.Pod(index)
		fmt.Fprintf(w, "pod %d %s in %s arrives %s runs %s", pod.Index, pod.UID, pod.Namespace, pod.Arrival, pod.Length)
		if pod.Owner != (workload.Owner{}) {
			fmt.Fprintf(w, " of %s", pod.Owner)
		}
		if pod.Failed {
			fmt.Fprint(w, " fails")
		}
		if pod.DeletedEarly > 0 {
			fmt.Fprintf(w, " deleted early after %s", pod.DeletedEarly)
		}
		if pod.Again > 0 {
			fmt.Fprintf(w, " comes again after %s", pod.Again)
		}
		if len(pod.Bad) > 0 {
			fmt.Fprintf(w, " bad calls %v", pod.Bad)
		}
		fmt.Fprintln(w)
		for _, v := range pod.Volumes {
			fmt.Fprintf(w, "  volume %s %s read-only %t content %+v publish %+v unpublish %+v", v.Name, v.ID, v.ReadOnly, v.Content,
				v.Publish, v.Unpublish)
			if v.RemovedAfter > 0 {
				fmt.Fprintf(w, " removed after %s", v.RemovedAfter)
			}
			if v.OnFailure {
				fmt.Fprint(w, " kept on failure")
			}
			if len(v.Attributes) > 0 {
				fmt.Fprintf(w, " attributes %v", v.Attributes)
			}
			if v.PinnedAfter > 0 {
				fmt.Fprintf(w, " pinned after %s for %s", v.PinnedAfter, v.PinnedFor)
			}
			if v.ReleasedAfter > 0 {
				fmt.Fprintf(w, " released after %s", v.ReleasedAfter)
			}
			if v.AttachedAfter > 0 {
				fmt.Fprintf(w, " attached after %s for %s", v.AttachedAfter, v.AttachedFor)
			}
			if v.Trouble != nil {
				fmt.Fprintf(w, " fault %+v", *v.Trouble)
			}
			fmt.Fprintln(w)
		}
	}
	for _, f := range p.Faults() {
		fmt.Fprintf(w, "fault %s number %d when %d pods are over and %s later, for %s, step %s\n", f.Kind, f.Number, f.Pods,
			f.Delay, f.For, f.Step)
	}
	return w.Flush()
}
