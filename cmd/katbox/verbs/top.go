package verbs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
	"github.com/katbox/katbox/internal/model/terminal"
)

func topVerb() *cobra.Command {
	verb := &cobra.Command{Use: "top", Short: "shows who occupies the disk, the largest first", Args: verbs.Arguments(0, 0)}
	namespace := verb.Flags().StringP("namespace", "n", "", "this namespace only")
	pods := verb.Flags().Bool("pods", false, "each pod in a line, instead of each namespace")
	output := verb.Flags().StringP("output", "o", "", "json")
	verb.RunE = onNode(func(ctx context.Context, s *session, _ []string) error {
		if *output != verbs.OutputTable && *output != verbs.OutputJSON {
			return verbs.WrongUsage("--output %s is not json", verbs.Quoted(*output))
		}
		usage, err := s.client.Usage(ctx)
		if err != nil {
			return s.explain(err)
		}
		if *namespace != "" {
			other := func(p api.PodUsage) bool { return p.Namespace != *namespace }
			usage.Pods, usage.Namespaces = slices.DeleteFunc(usage.Pods, other), slices.DeleteFunc(usage.Namespaces, other)
		}
		if *output == verbs.OutputJSON {
			return s.WriteJSON(usage)
		}
		return s.showUsage(usage, *pods)
	})
	return verb
}

func (s *session) showUsage(usage api.Usage, pods bool) error {
	header := []string{"NAMESPACE", "LIVE", "SIZE", "RETAINED", "SIZE", "INODES"}
	if pods {
		header = slices.Insert(header, 1, "POD")
	}
	table := terminal.NewTable(s.Stdout, header...)
	rows, unmeasured := usage.Namespaces, 0
	if pods {
		rows = usage.Pods
	}
	for _, p := range rows {
		cells := []string{
			verbs.Known(p.Namespace), fmt.Sprint(p.Live), terminal.Size(p.LiveBytes),
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
	if pods && usage.Others != nil {
		free += fmt.Sprintf("\n%d smaller pods are missing above, which take %s together", usage.OtherPods,
			terminal.Size(usage.Others.LiveBytes+usage.Others.RetainedBytes))
	}
	if unmeasured > 0 {
		free += fmt.Sprintf("\n%d volumes are not measured yet: their sizes are missing above", unmeasured)
	}
	_, err := fmt.Fprintln(s.Stdout, free)
	return err
}
