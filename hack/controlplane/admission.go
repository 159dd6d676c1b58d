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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"proffer.dev/proffer/test"
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
	root, err := process.Checkout()
	if err != nil {
		return err
	}
	objects, err := ReadObjects(filepath.Join(root, policyRulesFile))
	if err != nil {
		return err
	}
	api, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := api.Create(ctx, object); err != nil {
			return fmt.Errorf("install %s: %w", policyRulesFile, err)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	err = test.Until(waiting, func(ctx context.Context) error {
		err := api.Create(ctx, brokenPolicy(), client.DryRunAll)
		switch {
		case err == nil:
			return errors.New("it accepts a policy that breaks them")
		case strings.Contains(err.Error(), policyRulesName):
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait until the API server applies %s: %w", policyRulesFile, err)
	}
	return nil
}

// ReadObjects returns the objects in a YAML file.
func ReadObjects(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	objects, err := ParseObjects(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return objects, nil
}

// ParseObjects returns the objects in YAML.
func ParseObjects(text []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
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
