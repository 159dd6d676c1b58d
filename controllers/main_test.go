package controllers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"proffer.dev/proffer/hack/controlplane"
)

// One control plane serves all tests of the package: they run one after the other, and each takes away what it made.
var (
	cluster *controlplane.Cluster
	api     client.Client
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	cluster, err = controlplane.Start(context.Background(), controlplane.Options{
		CRDDirs:  []string{filepath.Join("..", "config", "crd", "bases")},
		Progress: os.Stderr,
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := cluster.InstallPolicyRules(context.Background()); err != nil {
		return 0, err
	}
	api, err = client.New(cluster.Config, client.Options{Scheme: NewScheme()})
	if err != nil {
		return 0, err
	}
	return m.Run(), nil
}
