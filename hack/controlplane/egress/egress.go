// Package egress lets the service proxy of an API server reach an operator on the loopback device,
// which the proxy refuses as an endpoint. The API server sends what it proxies to an HTTP CONNECT
// proxy on a Unix socket, which leads the address of a pod to the operator.
package egress

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"proffer.dev/proffer/test/relay"
)

// The pod of the operator, and the Service whose proxy leads to it.
const (
	podIP   = "10.20.30.40"
	podPort = 8443
	pod     = "proffer-0"
	service = "proffer-metrics"
	port    = "https"
)

// Proxy leads the address of the operator's pod to a server. It is safe for concurrent use.
type Proxy struct {
	// Config is the file for the flag --egress-selector-config-file of kube-apiserver.
	Config string

	relay *relay.Relay
	to    atomic.Value // The address of the server.
}

// New listens in a directory until Close. Nothing is reached before Route.
func New(dir string) (*Proxy, error) {
	p, socket := &Proxy{Config: filepath.Join(dir, "egress.yaml")}, filepath.Join(dir, "egress.sock")
	p.to.Store("")
	target := func() string { return p.to.Load().(string) }
	var err error
	if p.relay, err = relay.New(relay.Options{Target: target, Socket: socket, Greet: connect}); err != nil {
		return nil, err
	}
	text := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n" +
		"- name: cluster\n  connection:\n    proxyProtocol: HTTPConnect\n" +
		"    transport:\n      uds:\n        udsName: " + socket + "\n"
	if err := os.WriteFile(p.Config, []byte(text), 0o600); err != nil {
		p.relay.Close()
		return nil, err
	}
	return p, nil
}

// Route leads the operator's pod to the HTTPS server at this address, or nowhere if it is empty.
func (p *Proxy) Route(server string) {
	p.to.Store(server)
	p.relay.Resume()
}

// Drop lets connections to the operator's pod hang until Route, as behind a firewall that drops packets.
func (p *Proxy) Drop() { p.relay.Pause() }

// Close ends all connections.
func (p *Proxy) Close() error {
	p.relay.Close()
	return nil
}

// connect answers the request of a caller, which must be for the operator's pod.
func connect(caller net.Conn) (net.Conn, error) {
	request, err := http.ReadRequest(bufio.NewReader(caller))
	if err != nil {
		return nil, err
	}
	if request.Host != fmt.Sprintf("%s:%d", podIP, podPort) {
		return nil, fmt.Errorf("%s is not the operator's pod", request.Host)
	}
	_, err = fmt.Fprint(caller, "HTTP/1.1 200 OK\r\n\r\n")
	return caller, err
}

// Replica returns what the controllers of a cluster would create for a replica that is ready: a pod,
// whose status has to be written after it was created, and the endpoint of its Service.
func Replica(namespace string) (*corev1.Pod, *discoveryv1.EndpointSlice) {
	replica := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "operator", Image: "proffer",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true),
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: podIP, PodIPs: []corev1.PodIP{{IP: podIP}}},
	}
	return replica, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service + "-0",
			Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{podIP}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: pod},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new(port), Port: new(int32(podPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
}
