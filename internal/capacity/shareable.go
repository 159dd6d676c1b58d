package capacity

import "strings"

// unshared lists the resources of nodes that no consumer asks for, by name or, with a * at the end, by the
// beginning of the name: the scheduler or an agent of the node counts them for pods by itself.
var unshared = []string{
	"attachable-volumes-*",                 // volumes of the storage drivers that Kubernetes once had built in
	"vpc.amazonaws.com/pod-eni",            // network interfaces of AWS, for pods with a security group
	"vpc.amazonaws.com/PrivateIPv4Address", // addresses of AWS, for pods on Windows
	"aliyun/eni",                           // network interfaces of Alibaba
	"aliyun/member-eni",                    // the same, several on one interface
	"tke.cloud.tencent.com/direct-eni",     // network interfaces of Tencent
	"tke.cloud.tencent.com/eni-ip",         // addresses of Tencent
	"networking.gke.io.networks/*",         // addresses of GKE in further networks
	"devices.kubevirt.io/*",                // kvm, tun, vhost-net: files that KubeVirt's virtual machines open
	"bridge.network.kubevirt.io/*",         // bridges of the node, for the same
	"smarter-devices/*",                    // device files of the node, such as its sound card
}

// Shareable reports whether a resource that nodes list is offered even if the policy does not name it. Hugepages,
// local storage and the devices of vendors are.
func Shareable(resource string) bool {
	for _, name := range unshared {
		if prefix, all := strings.CutSuffix(name, "*"); resource == name || all && strings.HasPrefix(resource, prefix) {
			return false
		}
	}
	return true
}
