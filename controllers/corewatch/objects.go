package corewatch

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/internal/capacity"
)

// identity is what client-go needs to know of an object to follow it.
type identity struct {
	namespace, name, uid, resourceVersion string
	// lastInitial marks the bookmark that ends the stream of the objects that were there at first.
	lastInitial bool
}

func identityOf(m *metav1.ObjectMeta) identity {
	return identity{
		namespace: m.Namespace, name: m.Name, uid: string(m.UID), resourceVersion: m.ResourceVersion,
		lastInitial: m.Annotations[metav1.InitialEventsAnnotationKey] == "true",
	}
}

// GetObjectKind implements runtime.Object. The Go type says what it is.
func (*identity) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// GetObjectMeta implements metav1.ObjectMetaAccessor, with a copy: to change it changes nothing.
func (i *identity) GetObjectMeta() metav1.Object {
	m := &metav1.ObjectMeta{Namespace: i.namespace, Name: i.name, UID: types.UID(i.uid), ResourceVersion: i.resourceVersion}
	if i.lastInitial {
		m.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return m
}

// pod is what there is to know of a Pod. It is decoded from the Pod that the API server sends.
type pod struct {
	identity
	capacity.Pod
	// counts is false for a pod that does not: it is not bound, is finished, or is a shadow.
	counts bool
}

func (p *pod) take(full *corev1.Pod) {
	p.identity = identityOf(&full.ObjectMeta)
	p.Pod, p.counts = parsePod(full)
}

// Reset and Unmarshal make it a message of apimachinery's protobuf serializer.
func (p *pod) Reset() { *p = pod{} }

// Unmarshal decodes the protobuf of a Pod.
func (p *pod) Unmarshal(data []byte) error {
	var full corev1.Pod
	if err := podMask.decode(data, &full); err != nil {
		return err
	}
	p.take(&full)
	return nil
}

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
	n.identity = identityOf(&full.ObjectMeta)
	n.Node = parseNode(full)
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
