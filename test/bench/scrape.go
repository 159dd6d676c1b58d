package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader is the ServiceAccount that may read the operator's metrics.
const reader = "bench"

// admitReader creates the reader, its permission to read metrics, and its token.
func (c *cluster) admitReader(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: reader, Namespace: "default"}}
	for _, obj := range []client.Object{
		account,
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: reader},
			Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: reader},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: reader, Namespace: "default"}},
		},
	} {
		if err := c.client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("letting %s read metrics: %w", reader, err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := c.client.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("a token for %s: %w", reader, err)
	}
	c.token = token.Status.Token
	return nil
}

// scrapeOperator reads the operator's metrics as the reader. It retries: the operator generates a
// key before it serves metrics.
func (c *cluster) scrapeOperator(ctx context.Context, o *operator) (m metrics, err error) {
	web := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the operator signs its certificate
	}}
	defer web.CloseIdleConnections()
	err = until(ctx, func() error {
		m, err = scrape(ctx, web, "https://"+o.metrics+"/metrics", c.token)
		return err
	})
	return m, err
}
