package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	restapi "proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/manifests"
	"proffer.dev/proffer/cmd/kubectl-proffer/internal/operatorclient"
	"proffer.dev/proffer/internal/controllers/orchestration"
	"proffer.dev/proffer/internal/kube/liqo"
	"proffer.dev/proffer/internal/operator"
)

// cluster reads what the checks need.
type cluster struct {
	config  *rest.Config
	api     client.Client
	dynamic dynamic.Interface
	http    *http.Client
	// core builds the URLs of the core group.
	core      rest.Interface
	discovery discovery.DiscoveryInterface
	// version asks the operator for its version, through the API server, and overview for what needs somebody.
	version  func(ctx context.Context) (string, error)
	overview func(ctx context.Context) (*restapi.Overview, error)
	// senders are the users of consumers that were tried.
	senders map[identity]sender
}

func newCluster(config *rest.Config) (*cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme, authenticationv1.AddToScheme,
		authorizationv1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{config: config, http: connection, senders: map[identity]sender{}}
	if c.api, err = client.New(config, client.Options{Scheme: scheme, HTTPClient: connection}); err != nil {
		return nil, err
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, connection); err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfigAndClient(config, connection)
	if err != nil {
		return nil, err
	}
	c.core = core.RESTClient()
	c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, connection)
	return c, err
}

// report makes all checks. Its error says that the API server cannot be asked at all.
func (c *cluster) report(ctx context.Context, namespace, liqoNamespace string, now time.Time) (Report, error) {
	apis, err := c.liqoAPIs()
	if err != nil && !apierrors.IsForbidden(err) {
		return Report{}, operatorclient.Explain(err)
	}
	findings, err := c.check(ctx, namespace, liqoNamespace, knownOf(apis, err), now)
	return newReport(findings), err
}

func (c *cluster) check(
	ctx context.Context, namespace, liqoNamespace string, apis known[liqoAPIs], now time.Time,
) ([]Finding, error) {
	deployment := get(ctx, c, &appsv1.Deployment{}, namespace, deploymentName)
	var f flags
	if deployment.err == nil {
		f, _ = flagsOf(deployment.value) // findReplicas reports the error.
	}
	own, err := ownCRDs(f.components()...)
	if err != nil {
		return nil, err
	}
	rights, err := neededRights(namespace, f)
	if err != nil {
		return nil, err
	}
	guards, err := ownGuards(f)
	if err != nil {
		return nil, err
	}
	account := "proffer"
	if deployment.err == nil && deployment.value.Spec.Template.Spec.ServiceAccountName != "" {
		account = deployment.value.Spec.Template.Spec.ServiceAccountName
	}
	policies := c.policies(ctx)
	service := get(ctx, c, &corev1.Service{}, namespace, serviceName)
	liqo := get(ctx, c, &appsv1.Deployment{}, liqoNamespace, liqoDeployment)

	findings := findCRDs(own, c.crds(ctx, own))
	findings = append(findings, findAccess(namespace+"/"+account, len(rights), c.denied(ctx, namespace, account, rights)))
	findings = append(findings, findReplicas(namespace, deployment))
	if deployment.err == nil {
		findings = append(findings, findPlacement(f, policies)...)
		pods := c.pods(ctx, deployment.value)
		version, err := c.version(ctx)
		findings = append(findings,
			findLeader(f, get(ctx, c, &coordinationv1.Lease{}, f.leaseNamespace, operator.LeaderElectionID), now),
			findNews(namespace, f, pods, c.probe(ctx, namespace, pods.value, portOf(f.probes))),
			findProxy(version, err))
		if err == nil {
			findings = append(findings, findBooks(c.books(ctx))...)
		}
	}
	ofService, at := findAddress(namespace, deployment, f, service)
	findings = append(findings, findLiqo(apis), ofService, findLiqoAddress(liqoNamespace, apis, liqo, service, at, f.tls))
	findings = append(findings, findLiqoSettings(apis, liqo, len(classesOf(policies.value)))...)
	findings = append(findings, c.guards(ctx, f, guardsFor(apis, guards), classesOf(policies.value))...)
	findings = append(findings, findPolicies(policies)...)
	if amounts := writtenAmounts(policies.value); len(amounts) > 0 {
		findings = append(findings, findSizes(amounts, c.allocatable(ctx))...)
	}
	findings = append(findings, findClasses(apis, policies)...)
	findings = append(findings, findGrants(
		namespace, classesOf(policies.value), c.grants(ctx, namespace), c.consumerPods(ctx))...)
	findings = append(findings, findOrchestrations(f, c.orchestrations(ctx), c.offloadings(ctx))...)
	return append(findings, findKubelets(f, c.virtualKubelets(ctx))...), nil
}

// get reads one object.
func get[T client.Object](ctx context.Context, c *cluster, into T, namespace, name string) known[T] {
	return knownOf(into, c.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into))
}

func (c *cluster) crds(
	ctx context.Context, own []*apiextensionsv1.CustomResourceDefinition,
) map[string]known[*apiextensionsv1.CustomResourceDefinition] {
	all := map[string]known[*apiextensionsv1.CustomResourceDefinition]{}
	for _, crd := range own {
		all[crd.Name] = get(ctx, c, &apiextensionsv1.CustomResourceDefinition{}, "", crd.Name)
	}
	return all
}

// parallel bounds the reviews of rights that are asked for at a time.
const parallel = 10

// denied returns the rights that the ServiceAccount does not have, in their order.
func (c *cluster) denied(
	ctx context.Context, namespace, account string, rights []manifests.Right,
) known[[]manifests.Right] {
	reviews := make([]*authorizationv1.SubjectAccessReview, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, r := range rights {
		reviews[i] = review(r, namespace, account)
		group.Go(func() error { return c.api.Create(ctx, reviews[i]) })
	}
	err := group.Wait()
	var lacking []manifests.Right
	for i, review := range reviews {
		if !review.Status.Allowed {
			lacking = append(lacking, rights[i])
		}
	}
	return knownOf(lacking, err)
}

// pods returns the names of the pods of a Deployment, sorted.
func (c *cluster) pods(ctx context.Context, d *appsv1.Deployment) known[[]string] {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	list := &corev1.PodList{}
	err = errors.Join(err, c.api.List(ctx, list,
		client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}))
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return knownOf(names, err)
}

// probe asks each pod whether it is ready, through the API server.
func (c *cluster) probe(ctx context.Context, namespace string, pods []string, port int) []probe {
	all := make([]probe, len(pods))
	var asking sync.WaitGroup
	for i, pod := range pods {
		url := c.core.Get().Namespace(namespace).Resource("pods").SubResource("proxy").
			Name(fmt.Sprintf("http:%s:%d", pod, port)).Suffix("readyz").Param("verbose", "").URL()
		all[i] = probe{pod: pod}
		asking.Go(func() { all[i].status, all[i].body, all[i].err = c.fetch(ctx, url.String()) })
	}
	asking.Wait()
	return all
}

// maxAnswer bounds the part of a probe's answer that is read, in bytes.
const maxAnswer = 64 << 10

// fetch returns an answer of HTTP. Its error explains a status other than 200.
func (c *cluster) fetch(ctx context.Context, url string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // It was only read.
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
		if refusal := (&metav1.Status{}); json.Unmarshal(text, refusal) == nil && refusal.Message != "" {
			err = errors.New(refusal.Message)
		}
	}
	return answer.StatusCode, string(text), err
}

func (c *cluster) policies(ctx context.Context) known[[]v1alpha1.ResourcePolicy] {
	list := &v1alpha1.ResourcePolicyList{}
	err := c.api.List(ctx, list)
	return knownOf(list.Items, err)
}

func (c *cluster) grants(ctx context.Context, namespace string) known[[]v1alpha1.Grant] {
	list := &v1alpha1.GrantList{}
	err := c.api.List(ctx, list, client.InNamespace(namespace))
	return knownOf(list.Items, err)
}

// consumerPods returns the pods that Liqo v1 made for the slices of consumers.
func (c *cluster) consumerPods(ctx context.Context) known[[]corev1.Pod] {
	list := &corev1.PodList{}
	err := c.api.List(ctx, list, client.HasLabels{liqo.CreatorLabel})
	return knownOf(list.Items, err)
}

func (c *cluster) orchestrations(ctx context.Context) known[[]v1alpha1.Orchestration] {
	list := &v1alpha1.OrchestrationList{}
	err := c.api.List(ctx, list)
	return knownOf(list.Items, err)
}

// offloadings returns the NamespaceOffloadings that the operator has written.
func (c *cluster) offloadings(ctx context.Context) known[[]metav1.PartialObjectMetadata] {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(liqo.NamespaceOffloadings.GroupVersion().WithKind(liqo.NamespaceOffloading + "List"))
	err := c.api.List(ctx, list, client.MatchingLabels{orchestration.ManagedByLabel: orchestration.ManagedBy})
	return knownOf(list.Items, err)
}

// virtualKubelets returns the Deployments of Liqo's virtual kubelets.
func (c *cluster) virtualKubelets(ctx context.Context) known[[]appsv1.Deployment] {
	list := &appsv1.DeploymentList{}
	err := c.api.List(ctx, list, client.MatchingLabels{liqo.ComponentLabel: liqo.VirtualKubelet})
	return knownOf(list.Items, err)
}

func (c *cluster) admissionPolicies(ctx context.Context) known[[]admissionregistrationv1.ValidatingAdmissionPolicy] {
	list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	err := c.api.List(ctx, list)
	return knownOf(list.Items, err)
}

func (c *cluster) admissionBindings(
	ctx context.Context,
) known[[]admissionregistrationv1.ValidatingAdmissionPolicyBinding] {
	list := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
	err := c.api.List(ctx, list)
	return knownOf(list.Items, err)
}

// guards reports on the guards. The classes are the ones that policies offer.
func (c *cluster) guards(ctx context.Context, f flags, own []guard, classes []string) []Finding {
	policies := c.admissionPolicies(ctx)
	class := ""
	if len(classes) > 0 {
		class = classes[len(classes)-1] // The unnamed class is the first.
	}
	return append([]Finding{findGuards(own, policies, c.admissionBindings(ctx))},
		findTrials(c.tryGuards(ctx, f, own, policies, class))...)
}

// liqoAPIs returns the resources of Liqo's groups.
func (c *cluster) liqoAPIs() (liqoAPIs, error) {
	groups, err := c.discovery.ServerGroups()
	if err != nil {
		return nil, err
	}
	var all liqoAPIs
	for _, g := range groups.Groups {
		if !strings.HasSuffix(g.Name, ".liqo.io") {
			continue
		}
		for _, v := range g.Versions {
			resources, err := c.discovery.ServerResourcesForGroupVersion(v.GroupVersion)
			if apierrors.IsNotFound(err) {
				continue // The group is being removed.
			}
			if err != nil {
				return nil, err
			}
			for _, r := range resources.APIResources {
				if !strings.Contains(r.Name, "/") {
					all = append(all, r.Name+"."+v.GroupVersion)
				}
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
