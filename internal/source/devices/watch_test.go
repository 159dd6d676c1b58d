package devices

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"proffer.dev/proffer/hack/controlplane"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/test"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // controller-runtime prints a warning if no logger is set.
	os.Exit(m.Run())
}

// waitTimeout bounds waits for events that take milliseconds on an idle machine.
const waitTimeout = time.Minute

// watchTest is a Watch of a cluster that runs until the test ends.
type watchTest struct {
	*Watch
	t      *testing.T
	ledger *capacity.Ledger
	woken  chan struct{}
	mu     sync.Mutex
	asked  map[string]int
}

// startWatch starts a Watch. answer may answer a request in place of the API server.
func startWatch(t *testing.T, config *rest.Config, answer func(*http.Request) *http.Response) *watchTest {
	t.Helper()
	w := &watchTest{t: t, ledger: capacity.NewLedger(), woken: make(chan struct{}, 1), asked: map[string]int{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			w.mu.Lock()
			w.asked[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]++
			w.mu.Unlock()
			if answer != nil {
				if a := answer(r); a != nil {
					return a, nil
				}
			}
			return next.RoundTrip(r)
		})
	})
	var err error
	w.Watch, err = New(config, Sink{
		SetDevices: func(node string, all map[string]capacity.Amounts) bool {
			return w.ledger.SetNode(capacity.Node{Name: node, State: capacity.Ready, Devices: all})
		},
		SetClaim: w.ledger.SetClaim, DeleteClaim: w.ledger.DeleteClaim, SetUncounted: w.ledger.SetUncounted,
	}, func() { signal(w.woken) }, logr.Discard())
	test.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { test.Check(t, w.Start(ctx)) })
	t.Cleanup(func() { cancel(); running.Wait() })
	select {
	case <-w.Done():
	case <-time.After(waitTimeout):
		t.Fatal("timed out waiting for the first lists")
	}
	return w
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// free returns the free GPUs of all nodes.
func (w *watchTest) free() int64 {
	v := w.ledger.View([]capacity.Selection{{}}, gpu)
	for i, name := range v.Columns {
		if name == gpu {
			return v.Pools[0].Free.At(i)
		}
	}
	return 0
}

// settles waits until this many GPUs are free.
func (w *watchTest) settles(when string, want int64) {
	w.t.Helper()
	late := time.After(waitTimeout)
	for w.free() != want {
		select {
		case <-w.woken:
		case <-late:
			w.t.Fatalf("%s: %d GPUs are free, want %d", when, w.free(), want)
		}
	}
}

// requests returns how often each kind was asked for.
func (w *watchTest) requests() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return map[string]int{
		"classes": w.asked["deviceclasses"], "slices": w.asked["resourceslices"], "claims": w.asked["resourceclaims"],
		"rules": w.asked["devicetaintrules"],
	}
}

func TestTheLedgerFollowsARealAPIServer(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	clients, err := kubernetes.NewForConfig(cluster.Config)
	test.Must(t, err)
	api := clients.ResourceV1()
	for name, header := range map[string]string{"in protobuf": "", "in JSON": "application/json"} {
		t.Run(name, func(t *testing.T) {
			w := startWatch(t, cluster.Config, func(r *http.Request) *http.Response {
				if header != "" {
					r.Header.Set("Accept", header)
				}
				return nil
			})
			test.Eventually(t, func() string { // The watch of classes follows their list.
				return cmp.Diff(map[string]int{"classes": 2, "slices": 0, "claims": 0, "rules": 0}, w.requests())
			})
			followDevices(t, w, api)
		})
	}
}

// followDevices makes devices in a cluster that has none, and removes them.
func followDevices(t *testing.T, w *watchTest, api resourceclient.ResourceV1Interface) {
	ctx, create := t.Context(), metav1.CreateOptions{}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.ExtendedResourceName = new(gpu)
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: `device.driver == "gpu.example.com"`,
	}}}
	_, err := api.ResourceSlices().Create(ctx, slice("n", "a", "b"), create)
	test.Must(t, err)
	class, err = api.DeviceClasses().Create(ctx, class, create)
	test.Must(t, err)
	w.settles("with a class", 2)
	_, err = api.ResourceSlices().Create(ctx, slice("m", "a", "b"), create)
	test.Must(t, err)
	w.settles("with another slice", 4)

	claim := allocated("c", "n", "a")
	status := claim.Status
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu",
	}}}
	claim.Namespace = metav1.NamespaceDefault
	claims := api.ResourceClaims(claim.Namespace)
	claim, err = claims.Create(ctx, claim, create)
	test.Must(t, err)
	claim.Status = status
	claim.Status.Allocation.Devices.Results[0].Request = "gpu"
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	test.Must(t, err)
	w.settles("with a device in use", 3)
	test.Must(t, claims.Delete(ctx, "c", metav1.DeleteOptions{}))
	w.settles("with none in use", 4)

	class.Spec.Selectors[0].CEL.Expression += ` && false`
	class, err = api.DeviceClasses().Update(ctx, class, metav1.UpdateOptions{})
	test.Must(t, err)
	w.settles("of a class that selects none", 0)
	class.Spec.Selectors = nil
	_, err = api.DeviceClasses().Update(ctx, class, metav1.UpdateOptions{})
	test.Must(t, err)
	w.settles("of a class that selects all", 4)
	test.Must(t, api.ResourceSlices().Delete(ctx, "slice-of-m", metav1.DeleteOptions{}))
	w.settles("without a slice", 2)
	test.Must(t, api.DeviceClasses().Delete(ctx, "gpu", metav1.DeleteOptions{}))
	w.settles("without a class", 0)
	test.Must(t, api.ResourceSlices().Delete(ctx, "slice-of-n", metav1.DeleteOptions{}))
}

// refusing answers requests for a resource with an error.
func refusing(resource string, with *apierrors.StatusError) func(*http.Request) *http.Response {
	return func(r *http.Request) *http.Response {
		if !strings.HasSuffix(r.URL.Path, "/"+resource) {
			return nil
		}
		body, _ := json.Marshal(with.Status())
		return &http.Response{
			StatusCode: int(with.ErrStatus.Code), Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(body)), Request: r,
		}
	}
}

func TestTheOperatorRunsOnWithoutAKindOrItsRight(t *testing.T) {
	cluster := controlplane.StartTest(t, controlplane.Options{})
	clients, err := kubernetes.NewForConfig(cluster.Config)
	test.Must(t, err)
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	_, err = clients.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	test.Must(t, err)
	kind := func(resource string) schema.GroupResource {
		return schema.GroupResource{Group: resourcev1.GroupName, Resource: resource}
	}
	forbidden := []capacity.Uncounted{{
		Resource: "resourceslices.resource.k8s.io", Why: "the operator may not list them: apply the roles of its version",
	}}
	for name, tc := range map[string]struct {
		resource string
		answer   *apierrors.StatusError
		want     []capacity.Uncounted
	}{
		"no class is served":     {"deviceclasses", apierrors.NewNotFound(kind("deviceclasses"), ""), nil},
		"no rule is served":      {"devicetaintrules", apierrors.NewNotFound(kind("devicetaintrules"), ""), nil},
		"slices may not be read": {"resourceslices", apierrors.NewForbidden(kind("resourceslices"), "", nil), forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := refusing(tc.resource, tc.answer) //nolint:bodyclose // The client closes it.
			w := startWatch(t, cluster.Config, refuse)
			if diff := cmp.Diff(tc.want, w.ledger.Uncounted()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
