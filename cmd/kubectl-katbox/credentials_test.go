package main

import (
	"runtime"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/katbox/katbox/internal/cli/verbs"
)

// TestCredentialsOfAProgram: most clusters have users whose kubeconfig names a program that logs in.
func TestCredentialsOfAProgram(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script of a shell is run")
	}
	c, names := nightly(t)
	by := func(script string) user {
		path := c.Kubeconfig("stranger")
		config, err := clientcmd.LoadFromFile(path)
		must(t, err)
		config.AuthInfos["user"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", script},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}}
		must(t, clientcmd.WriteToFile(*config, path))
		return user{t, path}
	}
	vic := by(`echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"vic"}}'`)
	if code, stdout, stderr := vic.run("list", "-o", "name", "job/weekly"); code != 0 || stdout != names[2]+"\n" {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	by("exit 3").wantFailure(verbs.CodeFailed, []string{"credentials of the kubeconfig has failed", "exit code 3", "log in again"}, "list")

	path := c.Kubeconfig("stranger")
	config, err := clientcmd.LoadFromFile(path)
	must(t, err)
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "gcp"}}
	must(t, clientcmd.WriteToFile(*config, path))
	user{t, path}.wantFailure(verbs.CodeFailed, []string{"gcp auth plugin has been removed"}, "list")
}
