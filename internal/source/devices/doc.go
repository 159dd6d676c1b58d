// Package devices brings the devices that drivers publish to the ledger (Kubernetes' dynamic resource allocation,
// resource.k8s.io/v1), and what claims use of them. Package inventory counts.
//
// DeviceClasses are always watched. ResourceSlices, ResourceClaims and DeviceTaintRules are watched while there is a
// class: without one, no pod can ask for a device by name. Slices are decoded by the selectors of the classes, and
// their attributes are dropped; so a change of the selectors lists them again. Until that list is complete, the
// former counts stay.
//
// A kind that the API server does not serve, or that the operator may not list, has no objects. The operator runs
// on, says so (capacity.Uncounted and the log), and asks again every five minutes.
package devices
