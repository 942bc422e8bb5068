package verbs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/terminal"
)

var topVerb = verb{
	name:    "top",
	summary: "shows who occupies the disk, the largest first",
	define: func(flags *pflag.FlagSet) action {
		namespace := flags.StringP("namespace", "n", "", "this namespace only")
		pods := flags.Bool("pods", false, "each pod in a line, instead of each namespace")
		output := flags.StringP("output", "o", "", "json")
		return func(ctx context.Context, s *session, _ []string) error {
			if *output != outputTable && *output != outputJSON {
				return wrongUsage("--output %s is not json", quoted(*output))
			}
			usage, err := s.client.Usage(ctx)
			if err != nil {
				return s.explain(err)
			}
			if *namespace != "" {
				usage.Pods = slices.DeleteFunc(usage.Pods, func(p api.PodUsage) bool { return p.Namespace != *namespace })
			}
			if !*pods {
				usage.Pods = byNamespace(usage.Pods)
			}
			slices.SortStableFunc(usage.Pods, largestFirst)
			if *output == outputJSON {
				return s.writeJSON(usage)
			}
			return s.showUsage(usage, *pods)
		}
	},
}

func largestFirst(a, b api.PodUsage) int {
	return cmp.Or(cmp.Compare(b.LiveBytes+b.RetainedBytes, a.LiveBytes+a.RetainedBytes),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.PodUID, b.PodUID))
}

// byNamespace adds up the pods of each namespace.
func byNamespace(pods []api.PodUsage) []api.PodUsage {
	var sums []api.PodUsage
	place := map[string]int{}
	for _, p := range pods {
		i, ok := place[p.Namespace]
		if !ok {
			i = len(sums)
			place[p.Namespace] = i
			sums = append(sums, api.PodUsage{Namespace: p.Namespace})
		}
		sum := &sums[i]
		sum.Live += p.Live
		sum.LiveBytes += p.LiveBytes
		sum.Retained += p.Retained
		sum.RetainedBytes += p.RetainedBytes
		sum.Inodes += p.Inodes
		sum.Unmeasured += p.Unmeasured
	}
	return sums
}

func (s *session) showUsage(usage api.Usage, pods bool) error {
	header := []string{"NAMESPACE", "LIVE", "SIZE", "RETAINED", "SIZE", "INODES"}
	if pods {
		header = slices.Insert(header, 1, "POD")
	}
	table := terminal.NewTable(s.stdout, header...)
	unmeasured := 0
	for _, p := range usage.Pods {
		cells := []string{
			known(p.Namespace), fmt.Sprint(p.Live), terminal.Size(p.LiveBytes),
			fmt.Sprint(p.Retained), terminal.Size(p.RetainedBytes), fmt.Sprint(p.Inodes),
		}
		if pods {
			cells = slices.Insert(cells, 1, cmp.Or(p.Pod, p.PodUID))
		}
		table.Row(cells...)
		unmeasured += p.Unmeasured
	}
	if err := table.Flush(); err != nil {
		return err
	}
	free := fmt.Sprintf("\n%s of %s are free", terminal.Size(usage.FreeBytes), terminal.Size(usage.TotalBytes))
	if usage.TotalBytes > 0 {
		free += fmt.Sprintf(" (%d %%)", int(100*float64(usage.FreeBytes)/float64(usage.TotalBytes)))
	}
	if usage.TotalInodes > 0 {
		free += fmt.Sprintf(", and %d of %d inodes", usage.FreeInodes, usage.TotalInodes)
	}
	if unmeasured > 0 {
		free += fmt.Sprintf("\n%d volumes are not measured yet: their sizes are missing above", unmeasured)
	}
	_, err := fmt.Fprintln(s.stdout, free)
	return err
}
