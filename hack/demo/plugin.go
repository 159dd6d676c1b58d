package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/hack/controlplane/egress"
	"proffer.dev/proffer/test/process"
)

// pluginNamespace is the namespace in which kubectl-proffer looks for the operator.
const pluginNamespace = "proffer-system"

// pluginFiles are the manifests that kubectl-proffer needs: its accounts with their rights, and the
// Service of the operator.
var pluginFiles = []string{
	"rbac/offers_reader_role.yaml", "rbac/catalog_reader_role.yaml", "rbac/simulator_role.yaml",
	"rbac/plugin_accounts.yaml", "manager/metrics_service.yaml",
}

// addPlugin builds kubectl-proffer into a directory for PATH, and has the API server's proxy lead to
// the operator, which serves HTTPS at this address.
func (c *cluster) addPlugin(ctx context.Context, operator string, progress io.Writer) error {
	fmt.Fprintln(progress, "building kubectl-proffer")
	c.plugin = filepath.Join(c.work, "bin")
	if err := os.Mkdir(c.plugin, 0o700); err != nil {
		return err
	}
	if err := process.AddPlugin(ctx, c.plugin); err != nil {
		return err
	}
	if err := c.applyPlugin(ctx); err != nil {
		return fmt.Errorf("making the accounts of kubectl-proffer: %w", err)
	}
	c.egress.Route(operator)
	return nil
}

func (c *cluster) applyPlugin(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pluginNamespace}}
	if err := c.client.Create(ctx, namespace); err != nil {
		return err
	}
	for _, file := range pluginFiles {
		objects, err := controlplane.ReadObjects(filepath.Join(c.root, "config", file))
		if err != nil {
			return err
		}
		for _, object := range objects {
			if object.GetKind() == "Service" {
				object.SetNamespace(pluginNamespace) // As the kustomization does.
			}
			if err := c.client.Create(ctx, object); err != nil {
				return err
			}
		}
	}
	pod, endpoint := egress.Replica(pluginNamespace)
	status := pod.Status
	if err := c.client.Create(ctx, pod); err != nil {
		return err
	}
	pod.Status = status
	return errors.Join(c.client.Status().Update(ctx, pod), c.client.Create(ctx, endpoint))
}
