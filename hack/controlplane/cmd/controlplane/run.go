package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"proffer.dev/proffer/hack/controlplane"
)

// run serves an API until ctx or the input ends.
func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "`file` to write the administrator's kubeconfig to")
	clientCA := flags.String("client-ca", "", "`file` with CA certificates whose clients are accepted too")
	var crds []string
	flags.Func("crds", "`directory` or file of CustomResourceDefinitions to install (repeatable)",
		func(dir string) error {
			crds = append(crds, dir)
			return nil
		})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" || flags.NArg() > 0 {
		return errors.New("the kubeconfig's file is missing, or an argument is not a flag: " +
			"write controlplane run --kubeconfig FILE")
	}
	cluster, err := controlplane.Start(ctx,
		controlplane.Options{CRDDirs: crds, ClientCA: *clientCA, Progress: os.Stderr, Output: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := cluster.WriteKubeconfig(*kubeconfig); err != nil {
		return err
	}
	fmt.Println(cluster.Assets)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	<-ctx.Done()
	return nil
}
