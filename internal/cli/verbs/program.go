package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/model/terminal"
)

// graceToEnd is how long an interrupted verb may take to close its files.
const graceToEnd = time.Second

// Program is a command line with verbs.
type Program struct {
	// Name is what a user types before the verb.
	Name string
	// About begins the overview of the verbs, and More ends it.
	About, More string
	// Verbs are in the order of the overview.
	Verbs []Verb
	// Targets says what a TARGET is. It ends the usage of each verb that takes one.
	Targets string
}

// Verb is a verb of a command line.
type Verb struct {
	Name string
	// Arguments and Summary are for the usage; Notes follow the flags in it.
	Arguments, Summary, Notes string
	// Least and Most are how many arguments it takes.
	Least, Most int
	// Hidden verbs are not in the overview: programs call them.
	Hidden bool
	// Define adds the verb's flags and returns what runs it after they are parsed.
	Define func(*pflag.FlagSet) Action
}

// Action runs a verb.
type Action func(ctx context.Context, s *Session, args []string) error

// Session is one run of a verb.
type Session struct {
	// Program is the name of the program.
	Program string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Shown says that Stdout is a terminal, Colors that it takes colors and the user wants them.
	Shown, Colors bool
	Now           func() time.Time
}

// Run runs the verb that args begin with. It returns the exit code of the process. Once ctx ends it
// returns soon, even if a reader of stdout stalls.
func (p Program) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ended := make(chan int, 1)
	go func() { ended <- p.run(ctx, args, stdin, stdout, stderr) }()
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

func (p Program) run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	end := func(name string, err error) int {
		return exitCode(ctx, strings.TrimSpace(p.Name+" "+name), err, out, stderr)
	}
	if len(args) == 0 {
		args = []string{"help"}
	}
	name, args := args[0], args[1:]
	switch {
	case name == "--help", name == "-h", name == "help" && len(args) == 0:
		p.Usage(out)
		return end("help", nil)
	case name == "help":
		name, args = args[0], []string{"--help"}
	}
	at := slices.IndexFunc(p.Verbs, func(v Verb) bool { return v.Name == name })
	switch {
	case at < 0 && strings.HasPrefix(name, "-"):
		return end("", WrongUsage("the verb comes first, and flags such as %s behind it; see %s help", Quoted(name), p.Name))
	case at < 0:
		return end("", WrongUsage("there is no verb %s; see %s help", terminal.Quote(name), p.Name))
	}
	s := &Session{Program: p.Name, Stdin: stdin, Stdout: out, Stderr: stderr, Now: time.Now}
	s.Shown = terminal.IsTerminal(stdout)
	s.Colors = s.Shown && terminal.TakesColors(stdout)
	return end(name, p.verb(ctx, p.Verbs[at], s, args))
}

// verb parses the arguments of a verb and does what they ask for.
func (p Program) verb(ctx context.Context, v Verb, s *Session, args []string) error {
	flags := pflag.NewFlagSet(v.Name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	do := v.Define(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		p.usage(s.Stdout, v, flags)
		return nil
	case err != nil:
		return WrongUsage("%s; see %s %s --help", err, p.Name, v.Name)
	case flags.NArg() < v.Least:
		return WrongUsage("an argument is missing: %s", p.synopsis(v))
	case flags.NArg() > v.Most:
		return WrongUsage("unexpected argument %s: %s", Quoted(flags.Arg(v.Most)), p.synopsis(v))
	}
	return do(ctx, s, flags.Args())
}

func (p Program) synopsis(v Verb) string {
	return strings.TrimSpace(p.Name + " " + v.Name + " " + v.Arguments)
}

// usage writes what --help shows of one verb.
func (p Program) usage(w io.Writer, v Verb, flags *pflag.FlagSet) {
	fmt.Fprintf(w, "%s\n\nIt %s.\n\n%s", p.synopsis(v), v.Summary, flags.FlagUsages())
	if v.Notes != "" {
		fmt.Fprintf(w, "\n%s\n", v.Notes)
	}
	if strings.Contains(v.Arguments, "TARGET") {
		fmt.Fprintf(w, "\n%s\n", p.Targets)
	}
}

// Usage writes the verbs, each in a line.
func (p Program) Usage(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", p.About)
	table := terminal.NewTable(w)
	for _, v := range p.Verbs {
		if !v.Hidden {
			table.Row("  "+v.Name, v.Arguments, v.Summary)
		}
	}
	table.Flush()
	fmt.Fprintf(w, "\n%s\n", p.More)
}
