package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/cli/verbs"
	"github.com/katbox/katbox/internal/model/terminal"
	"github.com/katbox/katbox/internal/plugin/cluster"
)

const allNamespaces = "all-namespaces"

// connection is how the API server is reached: kubectl's flags, with kubectl's meaning.
type connection struct {
	overrides     clientcmd.ConfigOverrides
	kubeconfig    string
	allNamespaces bool
	flags         *pflag.FlagSet
}

// newConnection returns a connection with its flags.
func newConnection() *connection {
	c := &connection{flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
	c.flags.SortFlags = false
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.ContextOverrideFlags.Namespace.Description = "the namespace; without it that of the context"
	clientcmd.BindOverrideFlags(&c.overrides, c.flags, names)
	c.flags.StringVar(&c.kubeconfig, clientcmd.RecommendedConfigPathFlag, "", "the kubeconfig file to use")
	c.flags.BoolVarP(&c.allNamespaces, allNamespaces, "A", false, "all namespaces")
	return c
}

// hideRare leaves in the help those that are in daily use; the others are as in kubectl.
func (c *connection) hideRare() {
	c.flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != clientcmd.FlagNamespace && f.Name != allNamespaces })
}

// namespaceInFull returns --namespace for a verb that has -n for more.
func (c *connection) namespaceInFull() *pflag.Flag {
	flag := *c.flags.Lookup(clientcmd.FlagNamespace)
	flag.Shorthand = ""
	flag.Usage += "; -n NAME is short for it"
	return &flag
}

// config returns the configuration that the flags select. It is read when it is needed.
func (c *connection) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
}

// spoken returns the flags that were given and that say which cluster is meant, and as whom. Secrets are
// none of them.
func (c *connection) spoken() (flags []string) {
	for _, name := range []string{
		clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext, clientcmd.FlagClusterName, clientcmd.FlagAuthInfoName,
	} {
		if f := c.flags.Lookup(name); f.Changed {
			flags = append(flags, "--"+name+"="+f.Value.String())
		}
	}
	return flags
}

// namespaces returns the names of namespaces for the user to choose among, and whether they are all that the
// cluster has. Who may not list those is offered what the kubeconfig has for this cluster.
func (s *session) namespaces(ctx context.Context) (names []string, all bool) {
	names, err := s.client.Namespaces(ctx)
	if err == nil {
		return names, true
	}
	config, err := s.connection.config().RawConfig()
	if err != nil {
		return nil, false // it was read before
	}
	current := cmp.Or(s.connection.overrides.CurrentContext, config.CurrentContext)
	if used := config.Contexts[current]; used != nil {
		maps.DeleteFunc(config.Contexts, func(_ string, c *clientcmdapi.Context) bool { return c.Cluster != used.Cluster })
	}
	names = append(namespacesOf(config), s.client.Namespace())
	slices.Sort(names)
	return slices.Compact(names), false
}

// open returns the client, and the namespace that the user means; empty for all.
func (c *connection) open() (client *cluster.Client, namespace string, err error) {
	loader := c.config()
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", errors.New("there is no kubeconfig that names a cluster: set KUBECONFIG or give --kubeconfig")
	case err != nil:
		return nil, "", fmt.Errorf("read the kubeconfig: %w; see kubectl config view", err)
	}
	config.UserAgent = "kubectl-katbox/" + version
	current, _, err := loader.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	if client, err = cluster.New(config, current); err != nil {
		return nil, "", err
	}
	switch {
	case c.allNamespaces:
		return client, "", nil
	case len(validation.IsDNS1123Label(current)) > 0:
		return nil, "", verbs.WrongUsage("%s is not the name of a namespace: see -n, and the context of the kubeconfig", verbs.Quoted(current))
	}
	return client, current, nil
}

// session is one run of a verb that asks the Kubernetes API.
type session struct {
	*verbs.Session
	client     *cluster.Client
	connection *connection
	// namespace is the one that the user means; empty for all.
	namespace string
	// warned are the warnings that the user has seen.
	warned map[string]bool
}

type action func(ctx context.Context, s *session, args []string) error

// inCluster returns the RunE of a verb that asks the Kubernetes API.
func inCluster(conn *connection, do action) func(*cobra.Command, []string) error {
	return func(verb *cobra.Command, args []string) error {
		s := &session{Session: verbs.NewSession(verb), connection: conn, warned: map[string]bool{}}
		var err error
		if s.client, s.namespace, err = conn.open(); err != nil {
			return err
		}
		return do(verb.Context(), s, args)
	}
}

// warn shows warnings, each once.
func (s *session) warn(texts ...string) {
	for _, text := range texts {
		if !s.warned[text] {
			s.warned[text] = true
			fmt.Fprintf(s.Stderr, "Warning: %s\n", terminal.Clean(text))
		}
	}
}
