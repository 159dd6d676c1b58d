package nodes

import (
	"encoding/json"
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/source/masked"
)

// shared returns one string for all equal ones: tens of thousands of pods share few values.
func shared(s string) string { return unique.Make(s).Value() }

// pod is decoded from the Pod that the API server sends.
type pod struct {
	masked.Version
	capacity.Pod
	// counts is the result of ParsePod.
	counts bool
	by     *decoder
}

func (p *pod) take(full *corev1.Pod) (err error) {
	if p.place(full); p.counts {
		p.Requests, err = p.by.bounded(full, requestsOf(full))
	}
	return err
}

// counted returns the pod, and whether it counts.
func (p *pod) counted() (capacity.Pod, bool) { return p.Pod, p.counts }

// place takes everything but the requests.
func (p *pod) place(full *corev1.Pod) {
	p.Pod, p.counts = placeOf(full)
	if p.Consumer != "" {
		p.Consumer, p.Creator = shared(p.Consumer), shared(p.Creator)
	}
	p.Version = masked.VersionOf(full.ResourceVersion)
}

// Unmarshal decodes the protobuf of a Pod.
func (p *pod) Unmarshal(data []byte) error {
	full := scratch.Get().(*corev1.Pod)
	defer scratch.Put(full)
	full.Reset()
	if err := placeMask.Keep(data, full.Unmarshal); err != nil {
		return err
	}
	if p.place(full); !p.counts {
		return nil
	}
	return requestsMask.Keep(data, func(kept []byte) (err error) {
		p.Requests, err = p.by.requests(full, kept)
		return err
	})
}

var scratch = sync.Pool{New: func() any { return new(corev1.Pod) }}

// UnmarshalJSON is for an API server, or a proxy, that sends no protobuf.
func (p *pod) UnmarshalJSON(data []byte) error {
	var full corev1.Pod
	if err := json.Unmarshal(data, &full); err != nil {
		return err
	}
	return p.take(&full)
}

// DeepCopyObject implements runtime.Object. It is no copy: nothing in it ever changes.
func (p *pod) DeepCopyObject() runtime.Object { return p }

// node is decoded from the Node that the API server sends.
type node struct {
	masked.Version
	capacity.Node
	// lastUp is the field of the Node, for one that is not Ready.
	lastUp time.Time
	by     *decoder
}

func (n *node) take(full *corev1.Node) {
	n.Version = masked.VersionOf(full.ResourceVersion)
	n.Node = ParseNode(full)
	if !isUp(&n.Node) {
		n.lastUp = lastUp(full)
	}
	n.Allocatable = n.by.allocatable(n.Name, n.Allocatable)
	of := n.Labels
	n.Labels = make(map[string]string, len(of))
	for key, value := range of {
		n.Labels[shared(key)] = shared(value)
	}
}

// Unmarshal decodes the protobuf of a Node.
func (n *node) Unmarshal(data []byte) error {
	var full corev1.Node
	if err := nodeMask.Keep(data, full.Unmarshal); err != nil {
		return err
	}
	n.take(&full)
	return nil
}

// UnmarshalJSON is for an API server, or a proxy, that sends no protobuf.
func (n *node) UnmarshalJSON(data []byte) error {
	var full corev1.Node
	if err := json.Unmarshal(data, &full); err != nil {
		return err
	}
	n.take(&full)
	return nil
}

// DeepCopyObject implements runtime.Object. It is no copy: nothing in it ever changes.
func (n *node) DeepCopyObject() runtime.Object { return n }
