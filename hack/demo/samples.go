package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"proffer.dev/proffer/hack/controlplane"
)

// samples is the directory of the samples, below the root of the repository.
const samples = "config/samples"

// firstPolicy is the sample that the demo suggests to edit.
const firstPolicy = "spare"

// firstFile is the sample that the demo suggests to apply to a cluster without policies.
const firstFile = samples + "/proffer.dev_v1alpha1_resourcepolicy_fixed.yaml"

// firstSamples are samples whose offers fit on a screen of 80 columns and 24 lines.
var firstSamples = []string{firstPolicy, "partners"}

// applySamples creates the first policies of config/samples.
func (c *cluster) applySamples(ctx context.Context, progress io.Writer) error {
	files, err := filepath.Glob(filepath.Join(c.root, samples, "proffer.dev_*.yaml"))
	if err != nil {
		return err
	}
	all := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		objects, err := controlplane.ReadObjects(file)
		if err != nil {
			return err
		}
		for _, object := range objects {
			all[object.GetName()] = object
		}
	}
	fmt.Fprintf(progress, "applying %d of %d samples\n", len(firstSamples), len(all))
	for _, name := range firstSamples {
		object, there := all[name]
		if !there {
			return fmt.Errorf("no sample in %s is named %s", samples, name)
		}
		// As kubectl apply does, which prints a warning about other objects.
		text, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
		if err := c.client.Create(ctx, object); err != nil {
			return fmt.Errorf("applying the sample %s: %w", name, err)
		}
	}
	c.samples = true
	return nil
}
