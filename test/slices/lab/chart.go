package lab

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// liqoNamespace is the namespace of Liqo.
const liqoNamespace = "liqo"

// installed are the kinds of the chart that matter without kubelets. Deployments are run as
// processes.
var installed = []string{
	"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "VkOptionsTemplate",
}

// A release is the rendered chart for a cluster.
type release []*unstructured.Unstructured

// render renders the chart in Liqo's module, like helm template.
func render(module, clusterID, apiServer string) (release, error) {
	liqo, err := loader.Load(filepath.Join(module, "deployments", "liqo"))
	if err != nil {
		return nil, fmt.Errorf("read Liqo's chart: %w", err)
	}
	_, version, _ := strings.Cut(filepath.Base(module), "@")
	values, err := chartutil.ToRenderValues(liqo, map[string]any{
		"tag":         version,
		"apiServer":   map[string]any{"address": apiServer},
		"discovery":   map[string]any{"config": map[string]any{"clusterID": clusterID}},
		"networking":  map[string]any{"enabled": false},
		"proxy":       map[string]any{"enabled": false},
		"storage":     map[string]any{"enabled": false},
		"telemetry":   map[string]any{"enabled": false},
		"metricAgent": map[string]any{"enabled": false},
	}, chartutil.ReleaseOptions{Name: "liqo", Namespace: liqoNamespace}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values of Liqo's chart: %w", err)
	}
	files, err := engine.Render(liqo, values)
	if err != nil {
		return nil, fmt.Errorf("render Liqo's chart: %w", err)
	}
	var objects release
	for name, text := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
				return nil, fmt.Errorf("%s of Liqo's chart: %w", name, err)
			}
			if len(u.Object) > 0 {
				objects = append(objects, u)
			}
		}
	}
	return objects, nil
}

// kinds returns the objects of these kinds.
func (r release) kinds(kinds ...string) release {
	var found release
	for _, u := range r {
		if slices.Contains(kinds, u.GetKind()) {
			found = append(found, u)
		}
	}
	return found
}

// arguments returns the arguments of a Deployment's container followed by more, which override
// them.
func (r release) arguments(deployment, clusterID string, more ...string) ([]string, error) {
	for _, u := range r.kinds("Deployment") {
		if u.GetName() != deployment {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
			return nil, err
		}
		environment := strings.NewReplacer("$(CLUSTER_ID)", clusterID, "$(POD_NAMESPACE)", liqoNamespace)
		var args []string
		for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
			args = append(args, environment.Replace(arg))
		}
		return append(args, more...), nil
	}
	return nil, fmt.Errorf("no Deployment %s in Liqo's chart", deployment)
}

// webhooks returns the chart's webhook configurations, with the address of a process instead of a
// Service.
func (r release) webhooks(address string, certificate []byte) (release, error) {
	configurations := r.kinds("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
	for _, u := range configurations {
		hooks, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		if err != nil {
			return nil, err
		}
		for _, hook := range hooks {
			hook := hook.(map[string]any)
			path, found, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
			if err != nil {
				return nil, err
			}
			if found {
				hook["clientConfig"] = map[string]any{
					"url":      (&url.URL{Scheme: "https", Host: address, Path: path}).String(),
					"caBundle": base64.StdEncoding.EncodeToString(certificate),
				}
			}
		}
		if err := unstructured.SetNestedSlice(u.Object, hooks, "webhooks"); err != nil {
			return nil, err
		}
	}
	return configurations, nil
}
