// Package orchestration puts Orchestrations into force: it watches the inputs of package broker,
// records each choice in the status of its Orchestration, and then writes one NamespaceOffloading of
// Liqo in each namespace that a consumer has sent, which says to which providers its pods go.
//
// # Steps
//
// A call of Reconcile is one pass over all Orchestrations, because the choices of one depend on the
// others. It gathers what is known (watch.go, measure.go), works out what should be (plan.go,
// offloading.go, render.go, choice.go: pure), writes the statuses that differ, and then the
// NamespaceOffloadings. An object that cannot be written does not keep the others from being written. All
// state is in these objects: the previous choice and the uptimes in the status, the deadline of each drain
// in an annotation of the NamespaceOffloading. So a pass can end between any two writes, and the next one,
// in whichever process, continues. A NamespaceOffloading is written only after its choice is recorded,
// since otherwise a restart could choose again.
//
// # A change of choice
//
// One write adds the new provider to the selector of a NamespaceOffloading, and notes until when the
// old one is kept at the latest. The old one is dropped when no pod of the namespace runs there and a
// new one has the namespace, or at that time: then Liqo deletes the namespace there.
//
// The old provider is not cordoned for the namespace, because Liqo v1.2.0 has no such thing. The one
// selector is both the node affinity that Liqo's webhook gives new pods (pkg/webhooks/pod), and the
// list of the clusters that have the namespace (namespaceoffloading-controller): both are matched with
// the labels of the same nodes, and a VirtualNode has the name of its Node. To cordon the Node, or to
// taint it, would affect every namespace. The strategy Local keeps new pods away from all providers at
// once, and lets them run on the nodes of this cluster: that is right when no Orchestration decides any
// more, and used then.
//
// # Whom to trust
//
// What a consumer sent is recognised by what Liqo writes on a Namespace, which a consumer cannot
// write. Liqo copies the label with the cluster ID from a label that the consumer can write on its
// NamespaceMap; so the sender is the owner of the tenant namespace that the NamespaceMap is in, and a
// namespace whose label differs is refused. No role of Liqo lets a consumer write
// NamespaceOffloadings: one that is not marked as ours is an admin's, and is left alone.
//
// A ProviderChoice is that of the owner of the tenant namespace that it is in. It narrows what the
// Orchestration allows (package broker), and its consumer cannot write its status. A consumer can write any
// metadata, of which nothing is kept, and fill the object so that no status fits: then only that status is
// not written.
package orchestration
