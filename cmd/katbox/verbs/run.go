package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/api"
	"github.com/katbox/katbox/internal/terminal"
)

const (
	// socketVariable is the environment variable of --socket.
	socketVariable = "KATBOX_ADMIN_SOCKET"
	standardSocket = "/csi/admin.sock"
	// graceToEnd is how long an interrupted verb may take to close its files.
	graceToEnd = time.Second
)

// verb is a verb of the command line.
type verb struct {
	name string
	// arguments and summary are for the usage; notes follow the flags in it.
	arguments, summary, notes string
	// least and most are how many arguments it takes.
	least, most int
	// define adds the verb's flags and returns what runs it after they are parsed.
	define func(*pflag.FlagSet) action
}

type action func(ctx context.Context, s *session, args []string) error

// verbs returns all of them in the order of the usage.
func verbs() []verb {
	return []verb{lsVerb, statVerb, catVerb, tailVerb, cpVerb, rmVerb, topVerb, reportVerb}
}

// session is one run of a verb.
type session struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	// shown says that stdout is a terminal.
	shown  bool
	socket string
	client *api.Client
	now    func() time.Time
}

// Asked reports whether the arguments of the program are for Run, and not flags of the daemon.
func Asked(args []string) bool { return len(args) > 0 && !strings.HasPrefix(args[0], "-") }

// Run runs the verb that args begin with. It returns the exit code of the process. Once ctx ends it
// returns soon, even if a reader of stdout stalls.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, stdin, stdout, stderr) }()
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
		return codeInterrupted
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{w: stdout}
	name, args := args[0], args[1:]
	if name == "help" {
		if len(args) == 0 {
			Usage(out)
			return exitCode(ctx, "help", nil, out, stderr)
		}
		name, args = args[0], []string{"--help"}
	}
	at := slices.IndexFunc(verbs(), func(v verb) bool { return v.name == name })
	if at < 0 {
		err := wrongUsage("there is no verb %s; see katbox help", terminal.Quote(name))
		return exitCode(ctx, "", err, out, stderr)
	}
	s := &session{stdin: stdin, stdout: out, stderr: stderr, shown: terminal.IsTerminal(stdout), now: time.Now}
	return exitCode(ctx, name, verbs()[at].run(ctx, s, args), out, stderr)
}

// run parses the arguments and does what they ask for.
func (v verb) run(ctx context.Context, s *session, args []string) error {
	flags := pflag.NewFlagSet(v.name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	do := v.define(flags)
	flags.StringVar(&s.socket, "socket", "", fmt.Sprintf("the daemon's admin socket; without it %s, or %s", socketVariable, standardSocket))
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		v.usage(s.stdout, flags)
		return nil
	case err != nil:
		return wrongUsage("%s; see katbox %s --help", err, v.name)
	case flags.NArg() < v.least:
		return wrongUsage("an argument is missing: %s", v.synopsis())
	case flags.NArg() > v.most:
		return wrongUsage("unexpected argument %s: %s", quoted(flags.Arg(v.most)), v.synopsis())
	}
	for _, socket := range []string{os.Getenv(socketVariable), standardSocket} {
		if s.socket == "" {
			s.socket = socket
		}
	}
	s.client = api.Dial(s.socket)
	defer s.client.Close()
	return do(ctx, s, flags.Args())
}

func (v verb) synopsis() string { return strings.TrimSpace("katbox " + v.name + " " + v.arguments) }

// usage writes what --help shows of one verb.
func (v verb) usage(w io.Writer, flags *pflag.FlagSet) {
	fmt.Fprintf(w, "%s\n\nIt %s.\n\n%s", v.synopsis(), v.summary, flags.FlagUsages())
	if v.notes != "" {
		fmt.Fprintf(w, "\n%s\n", v.notes)
	}
	if strings.Contains(v.arguments, "TARGET") {
		fmt.Fprintf(w, "\n%s\n", targetNotes)
	}
}

// Usage writes the verbs, each in a line, and how the daemon is started.
func Usage(w io.Writer) {
	fmt.Fprint(w, "katbox VERB reads the retained volumes of this node:\n\n")
	table := terminal.NewTable(w)
	for _, v := range verbs() {
		table.Row("  "+v.name, v.arguments, v.summary)
	}
	table.Flush()
	fmt.Fprint(w, "\nkatbox VERB --help shows more. katbox --nodeid NAME runs the daemon; katbox --help shows its flags.\n")
}
