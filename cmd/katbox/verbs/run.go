package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	socketFlag = "socket"
	// socketVariable is the environment variable of --socket.
	socketVariable = "KATBOX_ADMIN_SOCKET"
	standardSocket = "/csi/admin.sock"
)

// program returns the command line.
func program() *cobra.Command {
	root := verbs.Program{
		Executable: "katbox", Name: "katbox",
		About: "katbox VERB reads the retained volumes of this node, and says how long they are kept:",
		More:  "katbox VERB --help shows more. katbox --nodeid NAME runs the daemon; katbox --help shows its flags.",
		Verbs: []*cobra.Command{
			lsVerb(), statVerb(), catVerb(), tailVerb(), logsVerb(), grepVerb(), describeVerb(), cpVerb(), pinVerb(), unpinVerb(), releaseVerb(),
			rmVerb(), topVerb(), reportVerb(),
		},
		Targets: targetNotes,
	}.Command()
	root.PersistentFlags().String(socketFlag, "",
		fmt.Sprintf("the daemon's admin socket; without it %s, or %s", socketVariable, standardSocket))
	return root
}

// session is one run of a verb.
type session struct {
	*verbs.Session
	socket string
	client *api.Client
}

type action func(ctx context.Context, s *session, args []string) error

// onNode returns the RunE of a verb that asks the daemon of this node.
func onNode(do action) func(*cobra.Command, []string) error {
	return func(verb *cobra.Command, args []string) error {
		socket, err := verb.Flags().GetString(socketFlag)
		if err != nil {
			return err
		}
		socket = cmp.Or(socket, os.Getenv(socketVariable), standardSocket)
		s := &session{Session: verbs.NewSession(verb), socket: socket, client: api.Dial(socket)}
		defer s.client.Close()
		return do(verb.Context(), s, args)
	}
}

// Asked reports whether the arguments of the program are for Run, and not flags of the daemon.
func Asked(args []string) bool { return len(args) > 0 && !strings.HasPrefix(args[0], "-") }

// Run runs the verb that args begin with. It returns the exit code of the process. Once ctx ends it
// returns soon, even if a reader of stdout stalls.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return verbs.Run(ctx, program(), args, stdin, stdout, stderr)
}

// Usage writes the verbs, each in a line, and how the daemon is started.
func Usage(w io.Writer) {
	root := program()
	root.SetOut(w)
	_ = root.Help() // a reader that has gone needs nothing
}
