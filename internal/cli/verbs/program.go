package verbs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/model/terminal"
)

const (
	// graceToEnd is how long an interrupted verb may take to close its files.
	graceToEnd = time.Second
	// nearVerb is by how many letters a verb may differ from what was typed, to be suggested.
	nearVerb = 2
)

// Program is a command line with verbs.
type Program struct {
	// Executable is the name of the program's file, and Name what a user types before the verb.
	Executable, Name string
	// About begins the overview of the verbs, and More ends it.
	About, More string
	// Targets says what a TARGET is. It ends the help of each verb that takes one.
	Targets string
	// Verbs are in the order of the overview. Short is what a verb does: "lists the files of a volume".
	Verbs []*cobra.Command
}

// Command returns the command line, for [Run].
func (p Program) Command() *cobra.Command {
	root := &cobra.Command{
		Use: p.Executable, Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: p.Name},
		Args: noVerb, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: nearVerb,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.PersistentFlags().SortFlags = false
	root.PersistentFlags().BoolP("help", "h", false, "")
	root.PersistentFlags().Lookup("help").Hidden = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root {
			return WrongUsage("%w: the verb comes first, and its flags behind it; see %s help", err, p.Name)
		}
		return WrongUsage("%w; see %s --help", err, cmd.CommandPath())
	})
	root.SetHelpFunc(p.help)
	help := &cobra.Command{
		Use: "help [VERB]", Short: "says what a verb does and takes", Args: Arguments(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, _ := root.Find(args)
			if len(rest) > 0 {
				return noVerb(root, rest)
			}
			return about.Help()
		},
	}
	root.SetHelpCommand(help)
	for _, verb := range p.Verbs {
		verb.DisableFlagsInUseLine = true
		verb.Flags().SortFlags = false
		root.AddCommand(verb)
		help.ValidArgs = append(help.ValidArgs, cobra.CompletionWithDesc(verb.Name(), verb.Short))
	}
	return root
}

// noVerb refuses arguments that begin with no verb.
func noVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := ""
	if names := root.SuggestionsFor(args[0]); len(names) > 0 {
		near = "did you mean " + strings.Join(names, " or ") + "? "
	}
	return WrongUsage("there is no verb %s; %ssee %s help", terminal.Quote(args[0]), near, root.CommandPath())
}

// Arguments refuses fewer arguments of a verb than least, and more than most.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(verb *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return WrongUsage("an argument is missing: %s", verb.UseLine())
		case len(args) > most:
			return WrongUsage("unexpected argument %s: %s", Quoted(args[most]), verb.UseLine())
		}
		return nil
	}
}

// help writes what --help shows: of the program all verbs, each in a line.
func (p Program) help(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	if cmd.HasParent() {
		p.helpOf(w, cmd)
		return
	}
	fmt.Fprintf(w, "%s\n\n", p.About)
	table := terminal.NewTable(w)
	for _, verb := range p.Verbs {
		name, arguments, _ := strings.Cut(verb.Use, " ")
		table.Row("  "+name, arguments, verb.Short)
	}
	table.Flush()
	fmt.Fprintf(w, "\n%s\n", p.More)
}

// helpOf writes the help of one verb.
func (p Program) helpOf(w io.Writer, verb *cobra.Command) {
	fmt.Fprintf(w, "%s\n\nIt %s.\n", verb.UseLine(), verb.Short)
	verb.InheritedFlags() // are among the flags from then on
	parts := []string{verb.Flags().FlagUsages(), verb.Long}
	if verb.Example != "" {
		parts = append(parts, "Examples:\n"+verb.Example)
	}
	if strings.Contains(verb.Use, "TARGET") {
		parts = append(parts, p.Targets)
	}
	for _, part := range parts {
		if part != "" {
			fmt.Fprintf(w, "\n%s\n", strings.TrimSuffix(part, "\n"))
		}
	}
}

// Session is one run of a verb.
type Session struct {
	// Program is what a user types before the verb.
	Program string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Shown says that Stdout is a terminal, Colors that it takes colors and the user wants them.
	Shown, Colors bool
	Now           func() time.Time
}

// NewSession returns the session of a verb that [Run] runs.
func NewSession(verb *cobra.Command) *Session {
	s := &Session{
		Program: verb.Root().CommandPath(), Stdin: verb.InOrStdin(), Stdout: verb.OutOrStdout(), Stderr: verb.ErrOrStderr(), Now: time.Now,
	}
	if out, ok := s.Stdout.(*output); ok {
		s.Shown = terminal.IsTerminal(out.w)
		s.Colors = s.Shown && terminal.TakesColors(out.w)
	}
	return s
}

// Run runs the verb that args begin with. It returns the exit code of the process. Once ctx ends it
// returns soon, even if a reader of stdout stalls.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, root, args, stdin, stdout, stderr) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceToEnd)
	defer cancel()
	select {
	case code := <-ended:
		return code
	case <-grace.Done():
		return CodeInterrupted
	}
}

func execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	verb, err := root.ExecuteContextC(ctx)
	return exitCode(ctx, verb.CommandPath(), err, out, stderr)
}
