package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/api/v1alpha1"
	"proffer.dev/proffer/internal/capacity"
	"proffer.dev/proffer/internal/kube/jsonstream"
	"proffer.dev/proffer/internal/policy"
	"proffer.dev/proffer/internal/visible"
)

// Anonymise copies the JSON of a rest.World, and replaces what names consumers, nodes, namespaces,
// ResourceSlices and pods, and the values of labels and taints. Equal names become equal ones. It holds
// one element of a list at a time, and the names that it has replaced, except names of pods: each pod
// is listed once.
//
// Names are numbered as they come, so names that decide between equals may order differently.
func Anonymise(out io.Writer, in io.Reader) error {
	// What visible.JSON escapes stays escaped.
	encoder := jsontext.NewEncoder(out, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	return newAnonymiser().world(encoder, jsonstream.NewUnbounded(in))
}

func newAnonymiser() *anonymiser {
	a := &anonymiser{
		consumers: numbering("consumer-"), nodes: numbering("node-"), namespaces: numbering("namespace-"),
		slices: numbering("slice-"), uids: numbering("uid-"), creators: numbering("creator-"), values: numbering("value-"),
		hosts: numbering("host-"), classes: numbering("unserved/"),
	}
	// Empty values are flags of a kind, as in node-role.kubernetes.io/control-plane. A pod without a node
	// waits for one.
	for _, of := range []*names{a.values, a.creators, a.consumers, a.uids, a.nodes, a.classes} {
		of.known[""] = ""
	}
	a.classes.known[liqoClass] = liqoClass
	for _, value := range capacity.UnfitValues() {
		a.values.known[value] = value
	}
	return a
}

// names are the replacements of one kind of name.
type names struct {
	prefix string
	known  map[string]string
	next   int
}

func numbering(prefix string) *names { return &names{prefix: prefix, known: map[string]string{}} }

// numbered returns the replacement of a name, a new one for a new name.
func (n *names) numbered(name string) string {
	replacement, ok := n.known[name]
	if !ok {
		n.next++
		replacement = n.prefix + strconv.Itoa(n.next)
		n.known[name] = replacement
	}
	return replacement
}

// liqoClass is answered by Liqo itself.
const liqoClass = "default"

type anonymiser struct {
	consumers, nodes, namespaces, slices, uids, creators, values, hosts *names
	// classes holds the classes of ResourceSlices, in which a consumer may write anything. The classes
	// of policies and offers, which come first, stay.
	classes *names
	// pods counts the pods.
	pods int
}

// world copies the fields of the top object, the lists element by element.
func (a *anonymiser) world(out *jsontext.Encoder, in *jsonstream.Reader) error {
	if err := out.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	err := in.Object(func(field string) error {
		if err := out.WriteToken(jsontext.String(field)); err != nil {
			return err
		}
		if err := a.field(out, in, field); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.WriteToken(jsontext.EndObject)
}

func (a *anonymiser) field(out *jsontext.Encoder, in *jsonstream.Reader, field string) error {
	switch field {
	case "policies":
		return list(out, in, a.policy)
	case "consumers":
		return list(out, in, a.consumer)
	case "offers":
		return list(out, in, a.offer)
	case "slices":
		return list(out, in, a.slice)
	case "nodes":
		return list(out, in, a.node)
	case "nodeGroups":
		return list(out, in, a.nodeGroup)
	case "pods":
		return list(out, in, a.pod)
	case "answers":
		return list(out, in, a.answer)
	case "unavailable":
		var problems map[string]string
		if err := in.Decode(&problems); err != nil {
			return err
		}
		for policy, problem := range problems {
			if problem != "" { // It names consumers and hosts.
				problems[policy] = "it is unavailable"
			}
		}
		return encode(out, problems)
	case "version", "revision", "time", "proffer", "filters", "levels":
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		return encode(out, value)
	default:
		// It may hold names.
		return errors.New("a newer operator serves this field: use the version of the plugin that fits the operator")
	}
}

// list copies a list, with each element changed. A list may be null.
func list[T any](out *jsontext.Encoder, in *jsonstream.Reader, change func(*T)) error {
	if kind, err := in.Kind(); err != nil {
		return err
	} else if kind == jsontext.KindNull {
		return out.WriteToken(jsontext.Null)
	}
	if err := out.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	err := jsonstream.List(in, func(element *T) error {
		change(element)
		return encode(out, element)
	})
	if err != nil {
		return err
	}
	return out.WriteToken(jsontext.EndArray)
}

func encode(out *jsontext.Encoder, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return out.WriteValue(visible.JSON(text))
}

func (a *anonymiser) consumer(c *rest.WorldConsumer) {
	c.ClusterID = a.consumers.numbered(c.ClusterID)
	labels(a.values, c.Labels)
}

func (a *anonymiser) answer(w *rest.WorldAnswer) { w.ClusterID = a.consumers.numbered(w.ClusterID) }

// address replaces the host of an address.
func (a *anonymiser) address(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, "1"
	}
	return net.JoinHostPort(a.hosts.numbered(host), port)
}

func (a *anonymiser) offer(o *rest.WorldOffer) {
	o.ClusterID, a.classes.known[o.Class] = a.consumers.numbered(o.ClusterID), o.Class
}

func (a *anonymiser) slice(s *rest.WorldSlice) {
	s.Name = a.slices.numbered(s.Namespace + "/" + s.Name)
	s.Namespace, s.Consumer = a.namespaces.numbered(s.Namespace), a.consumers.numbered(s.Consumer)
	s.UID, s.Class, s.GrantedIn = a.uids.numbered(s.UID), a.classes.numbered(s.Class), a.classes.numbered(s.GrantedIn)
	labels(a.values, s.Labels)
	labels(a.values, s.Nodes)
	seats := strings.Split(s.Seat, ",")
	for i, name := range seats {
		seats[i] = a.nodes.numbered(name)
	}
	s.Creator, s.Seat = a.creators.numbered(s.Creator), strings.Join(seats, ",")
	s.Problem = "" // It quotes what the consumer wrote.
}

func (a *anonymiser) node(n *rest.WorldNode) {
	n.Name = a.nodes.numbered(n.Name)
	labels(a.values, n.Labels)
	if n.Grace != "" {
		n.Grace = "without something that is anonymised" // It may name a label.
	}
	if n.Peer != nil {
		n.Peer.ClusterID = a.consumers.numbered(n.Peer.ClusterID)
	}
	for i, taint := range n.Taints {
		if key, rest, ok := strings.Cut(taint, "="); ok {
			value, effect, _ := strings.Cut(rest, ":")
			n.Taints[i] = key + "=" + a.values.numbered(value) + ":" + effect
		}
	}
}

func (a *anonymiser) nodeGroup(g *rest.WorldNodeGroup) {
	g.Name, g.ClusterID = a.slices.numbered(g.Name), a.consumers.numbered(g.ClusterID)
	for i, name := range g.Nodes {
		g.Nodes[i] = a.nodes.numbered(name)
	}
}

func (a *anonymiser) pod(p *rest.WorldPod) {
	a.pods++
	p.UID = "pod-" + strconv.Itoa(a.pods)
	p.Node, p.Consumer = a.nodes.numbered(p.Node), a.consumers.numbered(p.Consumer)
	p.Creator = a.creators.numbered(p.Creator)
}

// policy keeps of the metadata and the status what an evaluation depends on.
func (a *anonymiser) policy(p *v1alpha1.ResourcePolicy) {
	p.ObjectMeta = metav1.ObjectMeta{
		Name: p.Name, UID: types.UID(a.uids.numbered(string(p.UID))),
		Generation: p.Generation, CreationTimestamp: p.CreationTimestamp,
	}
	status := v1alpha1.ResourcePolicyStatus{
		ObservedGeneration: p.Status.ObservedGeneration, OfferedResources: p.Status.OfferedResources,
	}
	for _, c := range p.Status.Conditions {
		c.Message = ""
		status.Conditions = append(status.Conditions, c)
	}
	p.Status = status
	policy.Visit(&p.Spec, a.value)
}

// value replaces or clears a value of a policy's spec, unless its type is one that names nobody.
func (a *anonymiser) value(at any, text string) (into bool) {
	switch at := at.(type) {
	case *v1alpha1.ClusterID:
		*at = v1alpha1.ClusterID(a.consumers.numbered(string(*at)))
	case *v1alpha1.LabelValue:
		*at = v1alpha1.LabelValue(a.values.numbered(string(*at)))
	case *metav1.LabelSelector:
		labels(a.values, at.MatchLabels)
		for i := range at.MatchExpressions {
			for k, value := range at.MatchExpressions[i].Values {
				at.MatchExpressions[i].Values[k] = a.values.numbered(value)
			}
		}
		return false
	case *corev1.Toleration:
		at.Value = a.values.numbered(at.Value)
		return false
	case **v1alpha1.ExternalTLS:
		*at = nil
	case **v1alpha1.Catalog: // It is written for consumers to recognize the provider, and decides nothing.
		*at = nil
	case *v1alpha1.Mode, *v1alpha1.Reclaim, *v1alpha1.NodeCount, *v1alpha1.ExternalForm, *v1alpha1.OnFailure,
		*v1alpha1.OnExcess, *v1alpha1.SliceFit, *v1alpha1.LabelKey, *v1alpha1.ResourceName, *corev1.ResourceName,
		*v1alpha1.ClassName:
	default: // An expression, prose, or whatever a new field may hold.
		switch v := reflect.ValueOf(at).Elem(); {
		case v.Kind() != reflect.String:
		case text == "class":
			a.classes.known[v.String()] = v.String()
		case text == "host":
			v.SetString(a.address(v.String()))
		default:
			v.SetString("")
		}
	}
	return true
}

// labels replaces values in the order of keys, so that the same snapshot has the same replacements.
func labels(values *names, of map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		of[key] = values.numbered(of[key])
	}
}
