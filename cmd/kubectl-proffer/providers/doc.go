// Package providers is the command kubectl proffer providers, for consumers of brokers: which of a broker's providers
// run this cluster's pods, and which of them it wants.
package providers
