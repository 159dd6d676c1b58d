package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test/process"
)

// The file and the name of the admission policy of config/admission.
const (
	policyRulesFile = "config/admission/resourcepolicy.yaml"
	policyRulesName = "proffer-resourcepolicy"
)

// InstallPolicyRules installs config/admission, the rules on ResourcePolicies that are not in their
// CRD, and returns once the API server applies them. The CRDs must be installed.
func (c *Cluster) InstallPolicyRules(ctx context.Context) error {
	return c.changePolicyRules(ctx, true,
		func(api client.Client, object client.Object) error { return api.Create(ctx, object) })
}

// RemovePolicyRules deletes what InstallPolicyRules has installed, and returns once the API server
// no longer applies it.
func (c *Cluster) RemovePolicyRules(ctx context.Context) error {
	return c.changePolicyRules(ctx, false,
		func(api client.Client, object client.Object) error { return api.Delete(ctx, object) })
}

func (c *Cluster) changePolicyRules(
	ctx context.Context, applied bool, change func(client.Client, client.Object) error,
) error {
	objects, err := readPolicyRules()
	if err != nil {
		return err
	}
	api, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := change(api, object); err != nil {
			return fmt.Errorf("change %s: %w", policyRulesFile, err)
		}
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, StartTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = api.Create(ctx, brokenPolicy(), client.DryRunAll)
			refused := last != nil && strings.Contains(last.Error(), policyRulesName)
			return refused == applied && (applied || last == nil), nil
		})
	if err != nil {
		return fmt.Errorf("wait until the API server applies %s, or no longer does: %w",
			policyRulesFile, errors.Join(err, last))
	}
	return nil
}

func readPolicyRules() ([]*unstructured.Unstructured, error) {
	root, err := process.Checkout()
	if err != nil {
		return nil, err
	}
	return ReadObjects(filepath.Join(root, policyRulesFile))
}

// ReadObjects returns the objects in a YAML file.
func ReadObjects(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// brokenPolicy returns a ResourcePolicy that the schema accepts and the rules reject: memory has no
// thousandths.
func brokenPolicy() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"offer": map[string]any{"fixed": map[string]any{"memory": "100m"}}},
	}}
	object.SetAPIVersion("proffer.dev/v1alpha1")
	object.SetKind("ResourcePolicy")
	object.SetName("probe")
	return object
}
