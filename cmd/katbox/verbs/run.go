package verbs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/api"
)

const (
	// socketVariable is the environment variable of --socket.
	socketVariable = "KATBOX_ADMIN_SOCKET"
	standardSocket = "/csi/admin.sock"
)

// program returns the command line.
func program() verbs.Program {
	return verbs.Program{
		Name:    "katbox",
		About:   "katbox VERB reads the retained volumes of this node, and says how long they are kept:",
		More:    "katbox VERB --help shows more. katbox --nodeid NAME runs the daemon; katbox --help shows its flags.",
		Verbs:   []verbs.Verb{lsVerb, statVerb, catVerb, tailVerb, cpVerb, pinVerb, unpinVerb, releaseVerb, rmVerb, topVerb, reportVerb},
		Targets: targetNotes,
	}
}

// session is one run of a verb.
type session struct {
	*verbs.Session
	socket string
	client *api.Client
}

type action func(ctx context.Context, s *session, args []string) error

// onNode returns the Define of a verb that asks the daemon of this node.
func onNode(define func(*pflag.FlagSet) action) func(*pflag.FlagSet) verbs.Action {
	return func(flags *pflag.FlagSet) verbs.Action {
		do := define(flags)
		socket := flags.String("socket", "", fmt.Sprintf("the daemon's admin socket; without it %s, or %s", socketVariable, standardSocket))
		return func(ctx context.Context, shared *verbs.Session, args []string) error {
			for _, other := range []string{os.Getenv(socketVariable), standardSocket} {
				if *socket == "" {
					*socket = other
				}
			}
			s := &session{Session: shared, socket: *socket, client: api.Dial(*socket)}
			defer s.client.Close()
			return do(ctx, s, args)
		}
	}
}

// Asked reports whether the arguments of the program are for Run, and not flags of the daemon.
func Asked(args []string) bool { return len(args) > 0 && !strings.HasPrefix(args[0], "-") }

// Run runs the verb that args begin with. It returns the exit code of the process. Once ctx ends it
// returns soon, even if a reader of stdout stalls.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return program().Run(ctx, args, stdin, stdout, stderr)
}

// Usage writes the verbs, each in a line, and how the daemon is started.
func Usage(w io.Writer) { program().Usage(w) }
