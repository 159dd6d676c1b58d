package corewatch

import (
	"encoding/json"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"proffer.dev/proffer/internal/capacity"
)

// identity is what client-go needs to know of an object to follow it.
type identity struct {
	// key tells objects of one kind apart. To client-go it is the name, and there are no namespaces: it keys with it what it gathers at first.
	key, resourceVersion string
	// lastInitial marks the bookmark that ends the stream of the objects that were there at first.
	lastInitial bool
}

func identityOf(key string, m *metav1.ObjectMeta) identity {
	return identity{key: key, resourceVersion: m.ResourceVersion, lastInitial: m.Annotations[metav1.InitialEventsAnnotationKey] == "true"}
}

// GetObjectKind implements runtime.Object. The Go type says what it is.
func (*identity) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// GetObjectMeta implements metav1.ObjectMetaAccessor, with a copy: to change it changes nothing.
func (i *identity) GetObjectMeta() metav1.Object {
	m := &metav1.ObjectMeta{Name: i.key, ResourceVersion: i.resourceVersion}
	if i.lastInitial {
		m.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return m
}

// shared returns one string for all that are equal: tens of thousands of pods are on thousands of nodes.
func shared(s string) string { return unique.Make(s).Value() }

// pod is what there is to know of a Pod. It is decoded from the Pod that the API server sends.
type pod struct {
	identity
	capacity.Pod
	// counts is false for a pod that does not: it is not bound, is finished, or is a shadow.
	counts bool
}

func (p *pod) take(full *corev1.Pod) {
	p.place(full)
	if p.counts {
		p.Requests = requestsOf(full)
	}
}

// place takes all but the requests.
func (p *pod) place(full *corev1.Pod) {
	p.Pod, p.counts = placeOf(full)
	p.Node, p.Consumer = shared(p.Node), shared(p.Consumer)
	// A pod that was deleted and made anew under its name is another pod.
	p.identity = identityOf(p.Key, &full.ObjectMeta)
}

// Reset and Unmarshal make it a message of apimachinery's protobuf serializer.
func (p *pod) Reset() { *p = pod{} }

// Unmarshal decodes the protobuf of a Pod.
func (p *pod) Unmarshal(data []byte) error {
	full := scratch.Get().(*corev1.Pod)
	defer scratch.Put(full)
	full.Reset()
	if err := placeMask.decode(data, full); err != nil {
		return err
	}
	if p.place(full); !p.counts {
		return nil
	}
	var err error
	p.Requests, err = decoded.requests(data)
	return err
}

var scratch = sync.Pool{New: func() any { return new(corev1.Pod) }}

// UnmarshalJSON is for an API server, or for something before it, that sends no protobuf.
func (p *pod) UnmarshalJSON(data []byte) error {
	var full corev1.Pod
	if err := json.Unmarshal(data, &full); err != nil {
		return err
	}
	p.take(&full)
	return nil
}

// DeepCopyObject implements runtime.Object. Nothing of it ever changes, so all may be shared.
func (p *pod) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// node is what there is to know of a Node. It is decoded from the Node that the API server sends.
type node struct {
	identity
	capacity.Node
}

func (n *node) take(full *corev1.Node) {
	n.identity = identityOf(full.Name, &full.ObjectMeta)
	n.Node = parseNode(full)
	of := n.Labels
	n.Labels = make(map[string]string, len(of))
	for key, value := range of {
		n.Labels[shared(key)] = shared(value)
	}
}

// Reset and Unmarshal make it a message of apimachinery's protobuf serializer.
func (n *node) Reset() { *n = node{} }

// Unmarshal decodes the protobuf of a Node.
func (n *node) Unmarshal(data []byte) error {
	var full corev1.Node
	if err := nodeMask.decode(data, &full); err != nil {
		return err
	}
	n.take(&full)
	return nil
}

// UnmarshalJSON is for an API server, or for something before it, that sends no protobuf.
func (n *node) UnmarshalJSON(data []byte) error {
	var full corev1.Node
	if err := json.Unmarshal(data, &full); err != nil {
		return err
	}
	n.take(&full)
	return nil
}

// DeepCopyObject implements runtime.Object. Nothing of it ever changes, so all may be shared.
func (n *node) DeepCopyObject() runtime.Object {
	c := *n
	return &c
}

// objectList is a PodList or a NodeList.
type objectList[P any] struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []P `json:"items"`
}

// DeepCopyObject implements runtime.Object. Nothing of it ever changes, so all may be shared.
func (l *objectList[P]) DeepCopyObject() runtime.Object {
	c := *l
	return &c
}
