package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	manifests = "../../deploy/kustomize"
	examples  = "../../deploy/examples"
	chart     = "../../deploy/helm/katbox"
	namespace = "katbox"
	// That of the validation; helm says 1.20 when it is built without flags.
	kubernetes = "1.37.1"
)

// output runs a program that the Makefile has put into bin.
func output(program string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join("../../bin", program), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// kustomize renders a directory of manifests.
func kustomize(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := output("kustomize", "build", filepath.Join(manifests, dir))
	if err != nil {
		t.Fatal(err)
	}
	return split(t, rendered)
}

// helm renders the chart.
func helm(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := template(args...)
	if err != nil {
		t.Fatal(err)
	}
	return split(t, rendered)
}

func template(args ...string) ([]byte, error) {
	return output("helm", append([]string{"template", "katbox", chart, "--namespace", namespace, "--kube-version", kubernetes}, args...)...)
}

// split takes a stream of YAML apart.
func split(t *testing.T, stream []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		t.Fatal("nothing was rendered")
	}
	return objects
}

// files lists those that match, of which there has to be one.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	return paths
}
