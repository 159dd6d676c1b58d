// Package inventory counts devices as kube-scheduler allocates them to pods that request an extended
// resource (Kubernetes' dynamic resource allocation). It is pure: it uses no API client, clock or log.
//
// A DeviceClass serves one extended resource: its extendedResourceName, or, without one,
// deviceclass.resource.kubernetes.io/CLASS. A driver publishes the devices of a pool in ResourceSlices.
// For each node and resource:
//
//	amount = the devices that are allocated + those that can still be allocated, one by one
//
// A device can be allocated if the class selects it, it has no taint NoSchedule or NoExecute, and the
// counters that it consumes are left. Only a complete pool counts: the scheduler allocates nothing from a
// pool of whose newest generation slices are missing.
//
// What the amount would promise twice, or to pods that cannot use it, is 0 and has a reason (Uncounted):
//
//   - A device or a set of counters that two resources have in common. Resources without an
//     extendedResourceName give way to those with one.
//   - A set of counters that devices of several nodes consume, and a device that is not of one node.
//   - A device that can be allocated to several claims at once. The scheduler allocates it for as long as its
//     capacity lasts by the defaults of its driver, so it is a part of a device.
//   - A device on which a selector fails, because the scheduler then fails the pod.
//
// TestTheAmountIsWhatTheSchedulerCanAllocate compares it with the allocator of kube-scheduler.
package inventory
