package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/hack/controlplane/egress"
	"proffer.dev/proffer/hack/tether"
	"proffer.dev/proffer/test/process"
)

// cluster is the cluster that the demo runs against.
type cluster struct {
	config     *rest.Config
	client     client.Client
	own        bool   // the demo has started it
	kubeconfig string // its kubeconfig file
	tools      string // the directory of kubectl, for a cluster of its own
	plugin     string // the directory of kubectl-proffer, for a cluster of its own
	egress     *egress.Proxy
	root       string // the root of the repository
	work       string // a directory that is removed at the end
	tether     *tether.Tether
	token      string // lets the demo ask the operator for explanations
	samples    bool   // the demo has applied samples
	// reads is set if the operator may only read. It then has another kubeconfig and never leads.
	reads bool
	// empty is set for an existing cluster that had no policies, and unanswered if no Proffer writes there.
	empty, unanswered bool
	// leaseNamespace is the namespace of another Proffer's Lease, or default if no other Proffer runs.
	leaseNamespace string
}

// prepare returns a cluster with the CRDs and policies. One that the demo starts also has nodes,
// pods, consumers and the samples.
func prepare(ctx context.Context, o demoOptions, undo *cleanup, progress io.Writer) (*cluster, error) {
	root, err := process.Checkout()
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "proffer-demo-")
	if err != nil {
		return nil, err
	}
	held, err := tether.New(work)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	undo.add(func() error { return errors.Join(held.Release(), os.RemoveAll(work)) })
	c := &cluster{root: root, work: work, tether: held, kubeconfig: o.kubeconfig, own: o.kubeconfig == ""}
	if c.own {
		err = c.start(ctx, undo, progress)
	} else if c.config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig); err != nil {
		err = fmt.Errorf("reading --kubeconfig: %w", err)
	}
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	if c.client, err = client.New(c.config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	if c.own {
		if err := c.populate(ctx, progress); err != nil {
			return nil, fmt.Errorf("making nodes, pods and consumers: %w", err)
		}
		err = c.applySamples(ctx, progress)
	} else {
		err = c.join(ctx, o.samples, undo, progress)
	}
	if err != nil {
		return nil, err
	}
	return c, c.makeToken(ctx)
}

func (c *cluster) start(ctx context.Context, undo *cleanup, progress io.Writer) error {
	liqo, err := controlplane.LiqoFiles(ctx)
	if err != nil {
		return err
	}
	if c.egress, err = egress.New(c.work); err != nil {
		return err
	}
	undo.add(c.egress.Close)
	controlPlane, err := controlplane.Start(ctx, controlplane.Options{
		Progress: progress, APIServerFlags: map[string][]string{"egress-selector-config-file": {c.egress.Config}},
		CRDDirs: []string{
			filepath.Join(c.root, "config/crd/bases"),
			filepath.Join(liqo, "charts/liqo-crds/crds/core.liqo.io_foreignclusters.yaml"),
		},
	})
	if err != nil {
		return err
	}
	undo.add(controlPlane.Stop)
	if err := controlPlane.InstallPolicyRules(ctx); err != nil {
		return err
	}
	c.config, c.tools = controlPlane.Config, controlPlane.Assets
	c.kubeconfig = filepath.Join(c.work, "kubeconfig")
	return controlPlane.WriteKubeconfig(c.kubeconfig)
}

// crds returns the CRDs in config/crd/bases by name.
var crds = map[string]struct{ file, kind string }{
	"resourcepolicies.proffer.dev": {"proffer.dev_resourcepolicies.yaml", "ResourcePolicy"},
	"grants.proffer.dev":           {"proffer.dev_grants.yaml", "Grant"},
	"admissionparams.proffer.dev":  {"proffer.dev_admissionparams.yaml", "AdmissionParams"},
}

// atEnd bounds each step of the cleanup.
const atEnd = 10 * time.Second

// count returns the number of objects of one of our kinds, 0 if its CRD is missing.
func (c *cluster) count(ctx context.Context, kind string) (int, error) {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	err := c.client.List(ctx, &all)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking for objects of kind %s: %w", kind, err)
	}
	return len(all.Items), nil
}

// installCRDs installs the missing CRDs. An older Proffer may have installed some of them.
func (c *cluster) installCRDs(ctx context.Context, undo *cleanup, progress io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(crds)) {
		var crd metav1.PartialObjectMetadata
		crd.SetGroupVersionKind(crdKind)
		err := c.client.Get(ctx, client.ObjectKey{Name: name}, &crd)
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for the CRD %s: %w", name, err)
		}
		fmt.Fprintf(progress, "installing the CRD %s\n", name)
		options := envtest.CRDInstallOptions{
			Paths: []string{filepath.Join(c.root, "config/crd/bases", crds[name].file)}, ErrorIfPathMissing: true,
			MaxTime: controlplane.StartTimeout,
		}
		undo.add(func() error { // the context of the demo has ended by then
			ctx, cancel := context.WithTimeout(context.Background(), atEnd)
			defer cancel()
			n, err := c.count(ctx, crds[name].kind)
			if err != nil {
				return err
			}
			if n > 0 {
				fmt.Fprintf(progress,
					"leaving the CRD %s: the cluster has objects of it (%d) that are not the demo's\n", name, n)
				return nil
			}
			fmt.Fprintf(progress, "removing the CRD %s\n", name)
			return envtest.UninstallCRDs(c.config, options)
		})
		if _, err := envtest.InstallCRDs(c.config, options); err != nil {
			return fmt.Errorf("installing the CRD %s: %w", name, err)
		}
	}
	return nil
}

// makeToken creates an account that may read explanations, and its token, which is valid for a day. If the operator
// may only read, it uses the account too, which may then read what the operator needs.
func (c *cluster) makeToken(ctx context.Context) error {
	generated := metav1.ObjectMeta{GenerateName: "proffer-demo-"}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "proffer-demo-", Namespace: metav1.NamespaceDefault},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: generated, Rules: []rbacv1.PolicyRule{{
		NonResourceURLs: []string{api.OffersPath, api.OffersPath + "/*"}, Verbs: []string{"get"},
	}}}
	if c.reads {
		rules, err := c.readingRules()
		if err != nil {
			return err
		}
		role.Rules = append(role.Rules, rules...)
	}
	if err := errors.Join(c.client.Create(ctx, account), c.client.Create(ctx, role)); err != nil {
		return fmt.Errorf("making an account for the demo: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: generated,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace},
		},
	}
	if err := c.client.Create(ctx, binding); err != nil {
		return fmt.Errorf("making an account for the demo: %w", err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))},
	}
	if err := c.client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token for the demo: %w", err)
	}
	c.token = request.Status.Token
	return nil
}

// readingRules returns the rules of the operator's roles in config/rbac that let it read, and that
// let it review who asks for its metrics.
func (c *cluster) readingRules() ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	for file, verbs := range map[string][]string{
		"role.yaml": {"get", "list", "watch"}, "metrics_auth_role.yaml": {"create"},
	} {
		objects, err := controlplane.ReadObjects(filepath.Join(c.root, "config/rbac", file))
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			var role rbacv1.ClusterRole // A Role has the same rules.
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			for _, rule := range role.Rules {
				rule.Verbs = slices.DeleteFunc(rule.Verbs,
					func(verb string) bool { return !slices.Contains(verbs, verb) })
				if len(rule.Verbs) > 0 {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules, nil
}

// operatorKubeconfig returns the kubeconfig of the operator: that of the demo's account if it may
// only read.
func (c *cluster) operatorKubeconfig() (string, error) {
	if !c.reads {
		return c.kubeconfig, nil
	}
	config, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.kubeconfig}).Load()
	if err != nil {
		return "", fmt.Errorf("reading --kubeconfig: %w", err)
	}
	now, there := config.Contexts[config.CurrentContext]
	if !there {
		return "", fmt.Errorf("%s has no current context", c.kubeconfig)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{now.AuthInfo: {Token: c.token}}
	config.Contexts = map[string]*clientcmdapi.Context{config.CurrentContext: now}
	file := filepath.Join(c.work, "operator.kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}

// undoingClient is a client that deletes at the end what it created.
type undoingClient struct {
	client.Client
	undo     *cleanup
	progress io.Writer
}

func (r undoingClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	err := r.Client.Create(ctx, object, opts...)
	if err != nil {
		return err
	}
	r.undo.add(func() error { // the context of the demo has ended by then
		fmt.Fprintf(r.progress, "  deleting %s\n", object.GetName())
		ctx, cancel := context.WithTimeout(context.Background(), atEnd)
		defer cancel()
		return client.IgnoreNotFound(r.Client.Delete(ctx, object))
	})
	return nil
}
