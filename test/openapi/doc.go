// Package openapi checks the answers of internal/web against the OpenAPI document that it serves. The
// validator is why it is a module of its own.
package openapi
