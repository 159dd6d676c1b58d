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
)

// policyRules is the admission policy of config/admission, and its name.
const (
	policyRulesFile = "config/admission/resourcepolicy.yaml"
	policyRulesName = "proffer-resourcepolicy"
)

// InstallPolicyRules installs config/admission, the rules on ResourcePolicies
// that are not in their CRD, and returns once the API server applies them. The
// CRDs have to be installed.
func (c *Cluster) InstallPolicyRules(ctx context.Context) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, policyRulesFile))
	if err != nil {
		return err
	}
	api, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read %s: %w", policyRulesFile, err)
		}
		if err := api.Create(ctx, object); err != nil {
			return fmt.Errorf("install %s: %w", policyRulesFile, err)
		}
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = api.Create(ctx, brokenPolicy(), client.DryRunAll)
		return last != nil && strings.Contains(last.Error(), policyRulesName), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the API server applies %s: %w", policyRulesFile, errors.Join(err, last))
	}
	return nil
}

// brokenPolicy returns a ResourcePolicy that the schema accepts and the rules do
// not: memory has no thousandths.
func brokenPolicy() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"offer": map[string]any{"fixed": map[string]any{"memory": "100m"}}},
	}}
	object.SetAPIVersion("proffer.dev/v1alpha1")
	object.SetKind("ResourcePolicy")
	object.SetName("probe")
	return object
}
