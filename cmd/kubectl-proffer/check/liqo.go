package check

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"proffer.dev/proffer/internal/resourcereader"
)

const (
	checkLiqo         Check = "liqo"
	checkLiqoAddress  Check = "liqo-address"
	checkLiqoSettings Check = "liqo-settings"

	// liqoDeployment is the name of Liqo's controller-manager in its Helm chart.
	liqoDeployment = "liqo-controller-manager"
	// firstWithPools is the first minor version of Liqo v0 that reads pools.
	firstWithPools = 9
	// maxListed bounds the resources of Liqo that a finding lists.
	maxListed = 4
)

// The resources by which Liqo is recognised, as resource.group/version.
var (
	resourcesOfV0 = []string{"foreignclusters.discovery.liqo.io/v1alpha1", "resourceoffers.sharing.liqo.io/v1alpha1"}
	resourcesOfV1 = []string{
		"foreignclusters.core.liqo.io/v1beta1",
		"resourceslices.authentication.liqo.io/v1beta1",
		"tenants.authentication.liqo.io/v1beta1",
	}
)

// liqoAPIs are the resources of Liqo that the API server serves, sorted, as resource.group/version.
type liqoAPIs []string

func (a liqoAPIs) v0() bool { return slices.Contains(a, resourcesOfV0[0]) }
func (a liqoAPIs) v1() bool { return len(a.lacking(resourcesOfV1)) == 0 }

// lacking returns those of the resources that are not served.
func (a liqoAPIs) lacking(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(a, one) })
}

// findLiqo reports which versions of Liqo are installed.
func findLiqo(apis known[liqoAPIs]) Finding {
	if apis.err != nil {
		return apis.skip(checkLiqo, "discover the groups of the API")
	}
	var found []string
	if apis.value.v0() {
		found = append(found, "Liqo v0.x ("+resourcesOfV0[0]+")")
	}
	if apis.value.v1() {
		found = append(found, "Liqo v1 ("+resourcesOfV1[1]+")")
	}
	switch {
	case len(found) > 0:
		return checkLiqo.ok("Installed: %s.", strings.Join(found, " and "))
	case len(apis.value) > 0:
		served, absent := apis.value[:min(len(apis.value), maxListed)], apis.value.lacking(resourcesOfV1)
		return checkLiqo.warning("Liqo serves %s, but not %s.", strings.Join(served, ", "), strings.Join(absent, ", ")).
			do("Install one of the versions of Liqo in docs/reference/versions.md.")
	}
	return checkLiqo.warning("Liqo is not installed: no consumer can read the offers.").
		do("Install Liqo on this cluster, the provider.")
}

// address is an address at which Liqo can read offers of one form.
type address struct {
	host string
	port int32
	form resourcereader.Form
}

func (a address) String() string { return fmt.Sprintf("%s:%d", a.host, a.port) }

// versionsOf names the versions of Liqo that read a form.
func versionsOf(f resourcereader.Form) string {
	if f == resourcereader.Flat {
		return "Liqo v0.6 to v0.8"
	}
	return "Liqo v0.9 and v0.10"
}

// liqoManager is the container of Liqo's controller-manager.
type liqoManager struct{ *corev1.Container }

func managerOf(d *appsv1.Deployment) liqoManager {
	return liqoManager{containerOf(&d.Spec.Template.Spec, func(c corev1.Container) bool {
		return strings.Contains(c.Image, liqoDeployment)
	})}
}

// argument returns the value of a flag of Liqo, "" for a flag without a value. If the flag is not
// given, set is false.
func (m liqoManager) argument(name string) (value string, set bool) {
	args := slices.Concat(m.Command, m.Args)
	for i, argument := range args {
		is, text, written := strings.Cut(strings.TrimLeft(argument, "-"), "=")
		if is != name || is == argument {
			continue
		}
		if !written && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			text = args[i+1]
		}
		value, set = text, true
	}
	return value, set
}

var (
	liqoV0    = regexp.MustCompile(`:v?0\.([0-9]+)\.`)
	liqoAfter = regexp.MustCompile(`:v?[1-9][0-9]*\.[0-9]`)
)

// afterV0 reports whether this is Liqo v1 or newer, by the tag of its image. The CRDs of v0 may be
// left over.
func (m liqoManager) afterV0() bool { return liqoAfter.MatchString(m.Image) }

// form returns the form that this version of Liqo reads, by the tag of its image.
func (m liqoManager) form() (form resourcereader.Form, version string, ok bool) {
	match := liqoV0.FindStringSubmatch(m.Image)
	if match == nil {
		return 0, "", false
	}
	minor, err := strconv.Atoi(match[1])
	if err != nil {
		return 0, "", false
	}
	version = "v0." + match[1]
	if minor < firstWithPools {
		return resourcereader.Flat, version, true
	}
	return resourcereader.Pools, version, true
}

// findLiqoAddress reports whether Liqo v0 reads from the operator, in the form that it understands.
func findLiqoAddress(
	namespace string, apis known[liqoAPIs], liqo known[*appsv1.Deployment], service known[*corev1.Service],
	at []address, tls bool,
) Finding {
	switch {
	case apis.err == nil && !apis.value.v0():
		return checkLiqoAddress.ok("Not needed: there is no Liqo v0.6 to v0.10.")
	case liqo.missing():
		return checkLiqoAddress.skipped("There is no Deployment %s in namespace %s.", liqoDeployment, namespace).
			do("Name the namespace of Liqo with --liqo-namespace.")
	case liqo.err != nil:
		return liqo.skip(checkLiqoAddress, "get deployments.apps in "+namespace)
	}
	switch m := managerOf(liqo.value); {
	case m.afterV0():
		return checkLiqoAddress.ok("Not needed: %s reads from no address.", m.Image)
	case len(at) == 0:
		return checkLiqoAddress.skipped("The operator has no address that Liqo could use.")
	default:
		return findReader(namespace, m, service.value, at, tls)
	}
}

// findReader reports which address Liqo v0 reads from, which may be none of ours, and in which form. The namespace is
// Liqo's.
func findReader(namespace string, m liqoManager, service *corev1.Service, at []address, tls bool) Finding {
	form, version, versioned := m.form()
	right := at[0]
	for _, a := range at {
		if versioned && a.form == form {
			right = a
		}
	}
	set := fmt.Sprintf("Set controllerManager.config.resourcePluginAddress of Liqo's Helm chart to %s: "+
		"see docs/how-to/connect-liqo-v0.md.", right)
	configured, given := m.argument("resource-plugin-address")
	used := addressAt(configured, namespace, service, at)
	switch {
	case !given || configured == "":
		return checkLiqoAddress.warning("Liqo reads no offers of Proffer: it has no --resource-plugin-address.").do(set)
	case used == nil:
		return checkLiqoAddress.warning("Liqo reads from %s, not from Proffer.", configured).do(set)
	case tls:
		return checkLiqoAddress.wrong("The operator requires TLS, and Liqo connects without it.").
			do("Remove the component tls, or put a proxy with a client certificate in front of Liqo.")
	case !versioned:
		return checkLiqoAddress.warning("Liqo reads %s from %s. "+
			"Its image %s names no version of v0, so the form is not checked.", used.form, used, m.Image).
			do(fmt.Sprintf("%s is for %s.", used.form, versionsOf(used.form)))
	case used.form != form:
		return checkLiqoAddress.wrong("Liqo %s reads %s from %s, and understands only %s: its amounts are wrong.",
			version, used.form, used, form).
			do(formHelp(form, right, set))
	}
	return checkLiqoAddress.ok("Liqo %s reads %s from %s.", version, used.form, used)
}

// formHelp says how to get offers in a form.
func formHelp(form resourcereader.Form, right address, set string) string {
	if right.form == form {
		return set
	}
	if form == resourcereader.Flat {
		return "Add the component flat, and then set Liqo's address to its port 6002."
	}
	return "Remove --grpc-form=flat from the arguments of the operator."
}

// addressAt returns the address that Liqo's setting names, nil for none.
func addressAt(configured, liqoNamespace string, service *corev1.Service, at []address) *address {
	host, _, err := net.SplitHostPort(configured)
	if err != nil || service == nil {
		return nil
	}
	port := portOf(configured)
	full := service.Name + "." + service.Namespace
	same := host == full || host == full+".svc" || strings.HasPrefix(host, full+".svc.") ||
		host == service.Name && liqoNamespace == service.Namespace || host != "" && host == service.Spec.ClusterIP
	for i := range at {
		if same && int(at[i].port) == port {
			return &at[i]
		}
	}
	return nil
}

// findLiqoSettings reports the settings of Liqo that Proffer needs otherwise. Classes is the number
// of classes that policies in force offer.
func findLiqoSettings(apis known[liqoAPIs], liqo known[*appsv1.Deployment], classes int) []Finding {
	if liqo.err != nil {
		return nil // findLiqoAddress reports it.
	}
	m := managerOf(liqo.value)
	if m.afterV0() {
		return findLimitsEnforcement(m, classes)
	}
	if apis.err == nil && !apis.value.v0() {
		return nil
	}
	if _, given := m.argument("resource-plugin-address"); !given {
		return nil // Without the address, Liqo's own settings are for its own offers.
	}
	var findings []Finding
	if threshold, set := m.argument("offer-update-threshold-percentage"); set && threshold != "" && threshold != "0" {
		findings = append(findings, checkLiqoSettings.warning(
			"Liqo holds back changes of up to %s%%, on top of updateThresholdPercent of the policies.", threshold).
			do("Set controllerManager.config.offerUpdateThresholdPercentage of Liqo to 0."))
	}
	if enforced, set := m.argument("enable-resource-enforcement"); set && enforced != "false" && classes > 1 {
		findings = append(findings, checkLiqoSettings.wrong(
			"Liqo enforces resources, and policies offer %d classes: Liqo v0.9 and v0.10 deny every offloaded pod.", classes).
			do("Set controllerManager.config.enableResourceEnforcement of Liqo to false, or use one class."))
	}
	if len(findings) == 0 {
		return []Finding{checkLiqoSettings.ok("Liqo's threshold and enforcement fit the policies.")}
	}
	return findings
}

// findLimitsEnforcement reports whether Liqo v1 admits pods that its Quotas do not count.
func findLimitsEnforcement(m liqoManager, classes int) []Finding {
	enforcement, given := m.argument("default-limits-enforcement")
	switch {
	case classes == 0:
		return nil
	case !given, strings.EqualFold(enforcement, "None"): // None is Liqo's default.
		return []Finding{checkLiqoSettings.warning(
			"Liqo admits pods without requests, which its Quotas do not count: defaultLimitsEnforcement is None.").
			do("Set controllerManager.config.defaultLimitsEnforcement of Liqo to Soft. " +
				"Each container of a consumer must then request cpu and memory.")}
	}
	return []Finding{checkLiqoSettings.ok("Liqo refuses pods without requests for cpu and memory.")}
}
