package check

import (
	"cmp"
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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
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
	// discovery also builds URLs.
	discovery discovery.DiscoveryInterface
	// version asks the operator for its version, through the API server, and overview for what needs somebody.
	version  func(ctx context.Context) (string, error)
	overview func(ctx context.Context) (*restapi.Overview, error)
	// senders are the users of consumers that were tried.
	senders map[identity]sender
}

func newCluster(config *rest.Config) (*cluster, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
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

	c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, connection)
	return c, err
}

// report makes all checks. Its error says that the API server cannot be asked at all.
func (c *cluster) report(ctx context.Context, namespace, liqoNamespace string, now time.Time) (Report, error) {
	served, err := c.liqoAPIs()
	if err != nil && !apierrors.IsForbidden(err) {
		return Report{}, operatorclient.Explain(err)
	}
	apis := knownOf(served, err)
	deployment := get(ctx, c, &appsv1.Deployment{}, namespace, deploymentName)
	var f flags
	if deployment.err == nil {
		f, _ = flagsOf(deployment.value) // findReplicas reports the error.
	}
	own, err := ownCRDs(f)
	if err != nil {
		return Report{}, err
	}
	rights, err := neededRights(namespace, f)
	if err != nil {
		return Report{}, err
	}
	guards, err := ownGuards(f)
	if err != nil {
		return Report{}, err
	}
	account := cmp.Or(deployment.value.Spec.Template.Spec.ServiceAccountName, "proffer")
	policies := list[v1alpha1.ResourcePolicy](ctx, c, &v1alpha1.ResourcePolicyList{})
	classes := classesOf(policies.value)
	service := get(ctx, c, &corev1.Service{}, namespace, serviceName)
	manager := get(ctx, c, &appsv1.Deployment{}, liqoNamespace, liqoDeployment)

	crds := map[string]known[*apiextensionsv1.CustomResourceDefinition]{}
	for _, crd := range own {
		crds[crd.Name] = get(ctx, c, &apiextensionsv1.CustomResourceDefinition{}, "", crd.Name)
	}

	findings := findCRDs(own, crds)
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
	findings = append(findings, findLiqo(apis), ofService,
		findLiqoAddress(liqoNamespace, apis, manager, service, at, f.tls))
	findings = append(findings, findLiqoSettings(apis, manager, len(classes))...)
	findings = append(findings, c.guards(ctx, f, guardsFor(apis, guards), classes)...)
	findings = append(findings, findPolicies(policies)...)
	if amounts := writtenAmounts(policies.value); len(amounts) > 0 {
		findings = append(findings, findSizes(amounts, c.allocatable(ctx))...)
	}
	findings = append(findings, findClasses(apis, policies)...)
	// Liqo v1 labels the pods that it made for the slices of consumers.
	findings = append(findings, findGrants(namespace, classes,
		list[v1alpha1.Grant](ctx, c, &v1alpha1.GrantList{}, client.InNamespace(namespace)),
		list[corev1.Pod](ctx, c, &corev1.PodList{}, client.HasLabels{liqo.CreatorLabel}))...)
	findings = append(findings, findOrchestrations(f,
		list[v1alpha1.Orchestration](ctx, c, &v1alpha1.OrchestrationList{}), c.offloadings(ctx))...)
	if f.federation {
		findings = append(findings, c.federation(ctx, namespace, account)...)
	}
	return newReport(append(findings, findKubelets(f, c.virtualKubelets(ctx))...)), nil
}

// get reads one object.
func get[T client.Object](ctx context.Context, c *cluster, into T, namespace, name string) known[T] {
	return knownOf(into, c.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into))
}

// list reads the objects that the options select into a list whose Items are of type T.
func list[T any](
	ctx context.Context, c *cluster, into client.ObjectList, options ...client.ListOption,
) known[[]T] {
	err := c.api.List(ctx, into, options...)
	items, _ := meta.GetItemsPtr(into) // Every list has some.
	return knownOf(*items.(*[]T), err)
}

// denied returns the rights that the ServiceAccount does not have, in their order.
func (c *cluster) denied(
	ctx context.Context, namespace, account string, rights []manifests.Right,
) known[[]manifests.Right] {
	return knownOf(manifests.Denied(ctx, rights, func(ctx context.Context, r manifests.Right) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + account,
			Groups: []string{
				"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated",
			},
			ResourceAttributes: new(authorizationv1.ResourceAttributes(r)),
		}}
		err := c.api.Create(ctx, review)
		return review.Status.Allowed, err
	}))
}

// pods returns the names of the pods of a Deployment, sorted.
func (c *cluster) pods(ctx context.Context, d *appsv1.Deployment) known[[]string] {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	all := list[corev1.Pod](ctx, c, &corev1.PodList{},
		client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector})
	var names []string
	for i := range all.value {
		if all.value[i].DeletionTimestamp == nil {
			names = append(names, all.value[i].Name)
		}
	}
	slices.Sort(names)
	return knownOf(names, errors.Join(err, all.err))
}

// probe asks each pod whether it is ready, through the API server.
func (c *cluster) probe(ctx context.Context, namespace string, pods []string, port int) []probe {
	all := make([]probe, len(pods))
	var asking sync.WaitGroup
	for i, pod := range pods {
		url := c.discovery.RESTClient().Get().AbsPath("/api/v1/namespaces", namespace, "pods",
			fmt.Sprintf("http:%s:%d", pod, port), "proxy/readyz").Param("verbose", "").URL()
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

// offloadings returns the NamespaceOffloadings that the operator has written.
func (c *cluster) offloadings(ctx context.Context) known[[]metav1.PartialObjectMetadata] {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(liqo.NamespaceOffloadings.GroupVersion().WithKind(liqo.NamespaceOffloading + "List"))
	return list[metav1.PartialObjectMetadata](ctx, c, all,
		client.MatchingLabels{orchestration.ManagedByLabel: orchestration.ManagedBy})
}

// virtualKubelets returns the Deployments of Liqo's virtual kubelets.
func (c *cluster) virtualKubelets(ctx context.Context) known[[]appsv1.Deployment] {
	return list[appsv1.Deployment](ctx, c, &appsv1.DeploymentList{},
		client.MatchingLabels{liqo.ComponentLabel: liqo.VirtualKubelet})
}

// guards reports on the guards. The classes are the ones that policies offer.
func (c *cluster) guards(ctx context.Context, f flags, own []guard, classes []string) []Finding {
	policies := list[admissionregistrationv1.ValidatingAdmissionPolicy](
		ctx, c, &admissionregistrationv1.ValidatingAdmissionPolicyList{})
	bindings := list[admissionregistrationv1.ValidatingAdmissionPolicyBinding](
		ctx, c, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{})
	class := ""
	if len(classes) > 0 {
		class = classes[len(classes)-1] // The unnamed class is the first.
	}
	return append([]Finding{findGuards(own, policies, bindings)},
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
