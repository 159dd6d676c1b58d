package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
)

// manifest is a ResourcePolicy as it is written in a file.
type manifest struct {
	file   string
	object *unstructured.Unstructured
}

// name returns the name of the policy in errors.
func (m *manifest) name() string {
	return fmt.Sprintf("%s: ResourcePolicy %s", m.file, m.object.GetName())
}

// readManifests reads the ResourcePolicies of files, directories, URLs and "-", which is standard
// input. Objects of other kinds are reported on warnings and left out.
func readManifests(options *resource.FilenameOptions, warnings io.Writer) ([]manifest, error) {
	infos, err := resource.NewLocalBuilder().Unstructured().ContinueOnError().
		FilenameParam(false, options).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var manifests []manifest
	in := map[string]string{}
	for _, info := range infos {
		object, ok := info.Object.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("%s: the object is no single object", info.Source)
		}
		file := cmp.Or(info.Source, "standard input")
		kind, version := object.GroupVersionKind(), v1alpha1.GroupVersion.Version
		switch {
		case kind.Group != v1alpha1.GroupVersion.Group || kind.Kind != "ResourcePolicy":
			fmt.Fprintf(warnings, "%s: left out %s %s: only ResourcePolicies are simulated\n", file, kind.Kind, object.GetName())
			continue
		case kind.Version != version:
			return nil, fmt.Errorf("%s: ResourcePolicy %s has apiVersion %s: write %s",
				file, object.GetName(), object.GetAPIVersion(), v1alpha1.GroupVersion)
		case object.GetName() == "":
			return nil, fmt.Errorf("%s: a ResourcePolicy has no name: write metadata.name", file)
		case in[object.GetName()] != "":
			return nil, fmt.Errorf("ResourcePolicy %s is twice in the files: in %s and in %s",
				object.GetName(), in[object.GetName()], file)
		}
		in[object.GetName()] = file
		manifests = append(manifests, manifest{file, object})
	}
	if len(manifests) == 0 {
		return nil, errors.New("the files have no ResourcePolicy")
	}
	return manifests, nil
}

// typed returns an object, which is the policy of the manifest, in its type. The decoder is configured first.
func (m *manifest) typed(
	object *unstructured.Unstructured, configure func(*json.Decoder),
) (*v1alpha1.ResourcePolicy, error) {
	policy := &v1alpha1.ResourcePolicy{}
	text, err := object.MarshalJSON()
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		configure(decoder)
		err = decoder.Decode(policy)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name(), err)
	}
	return policy, nil
}

// dryRun returns the policy as the API server would store it: with its defaults, by its rules, and with
// the age and the status of the policy that it replaces.
func (m *manifest) dryRun(ctx context.Context, in dynamic.ResourceInterface) (*v1alpha1.ResourcePolicy, error) {
	stored, err := operatorclient.DryRunPolicy(ctx, in, m.object)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("the API server does not know ResourcePolicies: install Proffer's CRDs first (%w)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name(), explain(err))
	}
	policy, err := m.typed(stored, func(*json.Decoder) {})
	if err != nil {
		return nil, err
	}
	policy.ManagedFields = nil
	return policy, nil
}

// dryRunDelete returns an error if the API server would not delete the policy.
func dryRunDelete(ctx context.Context, in dynamic.ResourceInterface, name string) error {
	if err := in.Delete(ctx, name, metav1.DeleteOptions{DryRun: operatorclient.DryRun}); err != nil {
		return fmt.Errorf("--delete=%s: %w", name, explain(err))
	}
	return nil
}

// explain says what to do about an error of the API server.
func explain(err error) error {
	// The API server's own authorizer names the verb. Webhooks refuse in their own words.
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), ` cannot `) {
		return fmt.Errorf("%w: the dry run needs the right to write policies, as in ClusterRole %s",
			err, operatorclient.PolicyEditor)
	}
	return err
}
