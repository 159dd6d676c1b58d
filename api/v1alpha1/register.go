package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion names the group and the version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "proffer.dev", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types in this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ResourcePolicy{}, &ResourcePolicyList{}, &Grant{}, &GrantList{}, &Offer{}, &OfferList{},
		&Orchestration{}, &OrchestrationList{}, &ProviderChoice{}, &ProviderChoiceList{},
		&AdmissionParams{}, &AdmissionParamsList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
