package check

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"proffer.dev/proffer/internal/operator"
	"proffer.dev/proffer/internal/resourcereader"
)

const (
	checkReplicas Check = "replicas"
	checkLeader   Check = "leader"

	// deploymentName is the name of the Deployment and of its container in config/manager.
	deploymentName = "proffer"
	// unsetImage is the tag of the image in config/manager, which names none.
	unsetImage = "controller:{set-the-image}"
	// clockSkew is the largest tolerated difference between the clocks of this machine and of the
	// operator.
	clockSkew = time.Minute
)

// flags are the flags of the operator that checks depend on.
type flags struct {
	leaderElect, tls              bool
	grpc, form, flat, probes      string
	leaseNamespace, servedClasses string
	placements                    string
	publishOffers, orchestrate    bool
	federation                    bool
}

// inComponents returns the path in config of a file of this name, which may be a pattern, in each of the components
// that go with the flags.
func (f *flags) inComponents(name string) (files []string) {
	for _, component := range []struct {
		used bool
		name string
	}{
		{f.servedClasses != "", "served-classes"},
		{f.placements != "", "slice-pod-guard"},
		{f.orchestrate, "provider-guard"},
		{f.publishOffers, "catalog"},
		{f.orchestrate, "orchestrator"},
		{f.federation, "federation"},
	} {
		if component.used {
			files = append(files, "components/"+component.name+"/"+name)
		}
	}
	return files
}

// flagsOf reads the arguments of the operator's container as the operator does. Other flags are
// ignored: the operator itself refuses unknown ones.
func flagsOf(d *appsv1.Deployment) (flags, error) {
	var f flags
	var certificate string
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SetOutput(io.Discard)
	all.ParseErrorsAllowlist.UnknownFlags = true
	all.BoolVar(&f.leaderElect, "leader-elect", false, "")
	all.StringVar(&f.leaseNamespace, "leader-election-namespace", d.Namespace, "")
	all.StringVar(&f.grpc, "grpc-bind-address", ":6001", "")
	all.StringVar(&f.form, "grpc-form", resourcereader.Pools.String(), "")
	all.StringVar(&f.flat, "grpc-flat-bind-address", "", "")
	all.StringVar(&certificate, "grpc-tls-cert", "", "")
	all.StringVar(&f.probes, "health-probe-bind-address", ":8081", "")
	all.StringVar(&f.servedClasses, "served-classes", "", "")
	all.StringVar(&f.placements, "placements", "", "")
	all.BoolVar(&f.publishOffers, "publish-offers", false, "")
	all.BoolVar(&f.orchestrate, "orchestrate", false, "")
	all.BoolVar(&f.federation, "federation", false, "")
	c := operatorIn(&d.Spec.Template.Spec)
	err := all.Parse(slices.Concat(c.Command[min(1, len(c.Command)):], c.Args))
	f.tls = certificate != ""
	return f, err
}

// operatorIn returns the operator's container: the one of its name, or the first one.
func operatorIn(pod *corev1.PodSpec) *corev1.Container {
	return containerOf(pod, func(c corev1.Container) bool { return c.Name == deploymentName })
}

// containerOf returns the first container that is the one, or else the first one of all. It is empty if there is none.
func containerOf(pod *corev1.PodSpec, is func(corev1.Container) bool) *corev1.Container {
	if len(pod.Containers) == 0 {
		return &corev1.Container{}
	}
	return &pod.Containers[max(0, slices.IndexFunc(pod.Containers, is))]
}

// portOf returns the port of a listening address, 0 for none.
func portOf(address string) int {
	_, text, _ := net.SplitHostPort(address) // Of an address without a port, the text is empty.
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return port
}

// findReplicas reports whether the operator runs.
func findReplicas(namespace string, deployment known[*appsv1.Deployment]) Finding {
	switch {
	case deployment.missing():
		return checkReplicas.wrong("There is no Deployment %s in namespace %s.", deploymentName, namespace).
			do("Install Proffer, or name its namespace with --operator-namespace.")
	case deployment.err != nil:
		return deployment.skip(checkReplicas, "get deployments.apps in "+namespace)
	}
	d := deployment.value
	f, err := flagsOf(d)
	if err != nil {
		return checkReplicas.wrong("The operator does not start with its arguments: %v.", err).
			do("Correct the arguments of Deployment " + deploymentName + ".")
	}
	return findAvailable(namespace, d, f.leaderElect)
}

// findAvailable reports whether the replicas of a Deployment are there and fit each other.
func findAvailable(namespace string, d *appsv1.Deployment, leaderElect bool) Finding {
	wanted, ready, updated := ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas, d.Status.UpdatedReplicas
	pods := fmt.Sprintf("Look at kubectl -n %s get pods.", namespace)
	image := operatorIn(&d.Spec.Template.Spec).Image
	switch {
	case image == unsetImage:
		return checkReplicas.wrong("The Deployment names no image.").
			do("Set the image: see docs/how-to/install.md.")
	case wanted == 0:
		return checkReplicas.wrong("The Deployment is scaled to 0 replicas.").
			do(fmt.Sprintf("kubectl -n %s scale deployment/%s --replicas=2", namespace, deploymentName))
	case wanted > 1 && !leaderElect:
		return checkReplicas.wrong("%d replicas run without --leader-elect: all of them write.", wanted).
			do("Add --leader-elect to the arguments, or run one replica.")
	case ready == 0:
		return checkReplicas.wrong("None of %d replicas is available.", wanted).do(pods)
	case ready < wanted:
		return checkReplicas.warning("%d of %d replicas are available.", ready, wanted).do(pods)
	case updated < wanted || d.Status.ObservedGeneration < d.Generation:
		return checkReplicas.warning("A rollout is in progress: %d of %d replicas are updated.", updated, wanted).
			do(fmt.Sprintf("kubectl -n %s rollout status deployment/%s", namespace, deploymentName))
	}
	return checkReplicas.ok("%d of %d replicas are available, with image %s.", ready, wanted, image)
}

// findLeader reports whether a replica holds the Lease.
func findLeader(f flags, lease known[*coordinationv1.Lease], now time.Time) Finding {
	const logs = "The leader writes statuses, answers and Grants. Look at the logs of the operator."
	switch {
	case !f.leaderElect:
		return checkLeader.ok("The only replica writes: --leader-elect is off.")
	case lease.missing():
		return checkLeader.wrong("No replica leads: there is no Lease %s in namespace %s.",
			operator.LeaderElectionID, f.leaseNamespace).do(logs)
	case lease.err != nil:
		return lease.skip(checkLeader, "get leases.coordination.k8s.io in "+f.leaseNamespace)
	}
	spec := lease.value.Spec
	holder := ptr.Deref(spec.HolderIdentity, "")
	if holder == "" || spec.RenewTime == nil {
		return checkLeader.wrong("No replica leads: the Lease has no holder.").do(logs)
	}
	valid := clockSkew + time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0))*time.Second
	if age := now.Sub(spec.RenewTime.Time); age > valid {
		return checkLeader.wrong("No replica leads: %s renewed the Lease %s ago.", holder, age.Round(time.Second)).do(logs)
	}
	return checkLeader.ok("%s leads.", holder)
}
