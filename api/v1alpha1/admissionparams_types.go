package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AdmissionParams is a list that an admission policy of Proffer reads as its params. The operator
// creates and maintains these lists, in its own namespace, where no consumer can write.
//
// The params of an admission policy can also be a ConfigMap. But when the last policy or binding with
// such params is deleted, the API server stops its watch of ConfigMaps and never starts it again until
// it restarts: policies that are installed later go on judging by the ConfigMaps of that moment. For
// the kind of a CRD it starts a new watch.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=admissionparams
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AdmissionParams struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data are the entries of the list. The admission policy that reads it determines their meaning.
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=65536
	Data map[string]string `json:"data,omitempty"`
}

// AdmissionParamsList is a list of AdmissionParams.
//
// +kubebuilder:object:root=true
type AdmissionParamsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AdmissionParams `json:"items"`
}
