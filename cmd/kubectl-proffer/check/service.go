package check

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"proffer.dev/proffer/internal/resourcereader"
)

const (
	checkAddress Check = "address"
	// serviceName is the name of the Service for Liqo in config/manager.
	serviceName = "proffer"
)

// findAddress reports where Liqo v0 can read offers, and returns these addresses.
func findAddress(
	namespace string, deployment known[*appsv1.Deployment], f flags, service known[*corev1.Service],
) (Finding, []address) {
	switch {
	case deployment.err != nil:
		return checkAddress.skipped("Without the Deployment, its ports are not known."), nil
	case service.missing():
		return checkAddress.wrong("There is no Service %s in namespace %s.", serviceName, namespace).do(installHelp), nil
	case service.err != nil:
		return service.skip(checkAddress, "get services in "+namespace), nil
	}
	d, s := deployment.value, service.value
	labels := d.Spec.Template.Labels
	for key, value := range s.Spec.Selector {
		if labels[key] != value {
			return checkAddress.wrong("The Service %s selects %s=%s, which the operator's pods do not have.",
				s.Name, key, value).do(installHelp), nil
		}
	}
	var at []address
	var texts []string
	for form, listens := range listening(f) {
		port := servicePort(s, &d.Spec.Template.Spec, portOf(listens))
		if port == 0 {
			return checkAddress.wrong("No port of Service %s leads to %s, where the operator serves %s.", s.Name, listens, form).
				do("Add the port to the Service, or remove the address from the operator's arguments."), nil
		}
		a := address{s.Name + "." + s.Namespace + ".svc", port, form}
		at, texts = append(at, a), append(texts, fmt.Sprintf("%s serves %s, for %s", a, form, versionsOf(form)))
	}
	return checkAddress.ok("%s.", strings.Join(texts, "; ")), at
}

// listening yields each form with the address where it is served.
func listening(f flags) func(func(resourcereader.Form, string) bool) {
	return func(yield func(resourcereader.Form, string) bool) {
		form, err := resourcereader.ParseForm(f.form)
		if err == nil && !yield(form, f.grpc) {
			return
		}
		if f.flat != "" && f.flat != "0" {
			yield(resourcereader.Flat, f.flat)
		}
	}
}

// servicePort returns the port of the Service that leads to a port of the operator's container, 0
// for none.
func servicePort(s *corev1.Service, pod *corev1.PodSpec, target int) int32 {
	named := map[string]int32{}
	for _, p := range operatorIn(pod).Ports {
		named[p.Name] = p.ContainerPort
	}
	for _, p := range s.Spec.Ports {
		leadsTo := p.TargetPort.IntVal
		switch {
		case p.TargetPort.Type == intstr.String:
			leadsTo = named[p.TargetPort.StrVal]
		case leadsTo == 0:
			leadsTo = p.Port
		}
		if target != 0 && int(leadsTo) == target {
			return p.Port
		}
	}
	return 0
}
