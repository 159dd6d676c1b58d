// Package egress lets the service proxy of an API server reach an operator on the loopback device,
// which the proxy refuses as an endpoint. The API server sends what it proxies to an HTTP CONNECT
// proxy on a Unix socket, which leads the address of a pod to the operator.
package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	listener net.Listener

	mu   sync.Mutex
	to   string
	drop bool
	wg   sync.WaitGroup
}

// New listens in a directory until Close. Nothing is reached before Route.
func New(dir string) (*Proxy, error) {
	socket := filepath.Join(dir, "egress.sock")
	p := &Proxy{Config: filepath.Join(dir, "egress.yaml")}
	var err error
	if p.listener, err = net.Listen("unix", socket); err != nil {
		return nil, err
	}
	text := "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n" +
		"- name: cluster\n  connection:\n    proxyProtocol: HTTPConnect\n" +
		"    transport:\n      uds:\n        udsName: " + socket + "\n"
	if err := os.WriteFile(p.Config, []byte(text), 0o600); err != nil {
		_ = p.listener.Close()
		return nil, err
	}
	p.wg.Go(p.accept)
	return p, nil
}

// Route leads the operator's pod to the HTTPS server at this address, or nowhere if it is empty.
func (p *Proxy) Route(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to, p.drop = server, false
}

// Drop lets connections to the operator's pod hang until Route, as behind a firewall that drops packets.
// A connection that hangs ends when the API server closes it.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = true
}

// Close ends all connections that the API server has closed, and waits for the others.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.wg.Wait()
	return err
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

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(conn) })
	}
}

// serve connects one caller and returns when either end closes.
func (p *Proxy) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	request, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	to := ""
	p.mu.Lock()
	if request.Host == fmt.Sprintf("%s:%d", podIP, podPort) {
		to = p.to
	}
	drop := p.drop
	p.mu.Unlock()
	if drop {
		_, _ = io.Copy(io.Discard, in)
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		fmt.Fprint(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
	var wg sync.WaitGroup
	pipe := func(to, from net.Conn, r io.Reader) {
		_, _ = io.Copy(to, r)
		_ = to.Close()
		_ = from.Close()
	}
	wg.Go(func() { pipe(server, conn, in) })
	wg.Go(func() { pipe(conn, server, server) })
	wg.Wait()
}
