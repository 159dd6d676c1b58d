package liqo

import (
	"crypto/sha256"
	"fmt"
	"regexp"
)

// notInLabels are the characters that Liqo replaces in the label of a pod that names its creator,
// see github.com/liqotech/liqo/pkg/utils/resource.EscapeLabel.
var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9-_.]`)

// SliceUser returns the name in the certificate that Liqo signs for a ResourceSlice of a consumer. The
// user of its Quota has the same name (authentication.CommonNameResourceSliceCSR). It is empty without
// a consumer.
func SliceUser(name, consumer string) string {
	if consumer == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(consumer))
	return fmt.Sprintf("%s-%x", name, sum[:6])
}

// SliceCreator returns the value of CreatorLabel on the pods that run under a ResourceSlice of a
// consumer. Liqo's webhook sets it from the user.
func SliceCreator(name, consumer string) string {
	return notInLabels.ReplaceAllString(SliceUser(name, consumer), "-")
}
