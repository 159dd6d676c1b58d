// Package masked follows kinds with tens of thousands of objects, of which little counts.
//
// Objects are cut down before they are decoded: only the fields of a Mask are taken from the protobuf that the API
// server sends, and the generated code of k8s.io/api decodes those. The result goes to a Store and is dropped. The
// first list is decoded object by object while it arrives (ReadList). client-go does everything else: its
// reflector requests the list, follows the changes, and starts again where it must (Follow).
package masked
