package v1alpha1_test

import (
	"fmt"
	"strings"
)

// externalOffer returns an offer with an external source that has these fields besides the address.
func externalOffer(fields string) string {
	return "offer: {external: {" + strings.TrimSuffix("address: 'plugin.liqo:6001', "+fields, ", ") + "}}"
}

// atAddress returns an offer with an external source at an address.
func atAddress(address string) string { return "offer: {external: {address: '" + address + "'}}" }

const certificate = "-----BEGIN CERTIFICATE-----"

// wrongAddress is the refusal of an address.
func wrongAddress(address string) string {
	return fmt.Sprintf("spec.offer.external.address: Invalid value: %q: an address is a host and a port: "+
		"write it as in liqo-fixed-resources-plugin.liqo:6001, 10.0.0.7:6001 or [fd00::7]:6001", address)
}

// notAnAddress is a rule that an address violates.
func notAnAddress(name, address string) rule {
	return rule{name: name, invalid: atAddress(address), want: wrongAddress(address)}
}

var externalRules = []rule{
	{
		name:    "an external source is the only source",
		invalid: "offer: {fixed: {cpu: 2}, external: {address: 'plugin.liqo:6001'}}",
		want: `spec.offer: Invalid value: set exactly one of fixed (these amounts, for each consumer), nodes (a share of some nodes), ` +
			`peers (a share of what other clusters give) and external (what a resource plugin of Liqo v0.x answers)`,
	},
	{
		name:    "there is one of nodes and external",
		invalid: "offer: {nodes: {}, external: {address: 'plugin.liqo:6001'}}",
		want: `spec.offer: Invalid value: set exactly one of fixed (these amounts, for each consumer), nodes (a share of some nodes), ` +
			`peers (a share of what other clusters give) and external (what a resource plugin of Liqo v0.x answers)`,
	},
	{
		name:    "max and resources go with external",
		valid:   []string{"offer: {external: {address: 'plugin.liqo:6001'}, max: {cpu: 2}, resources: [cpu]}"},
		invalid: "offer: {external: {address: 'plugin.liqo:6001'}, reserve: {cpu: 2}}",
		want:    `spec.offer: Invalid value: reserve applies to nodes and peers: with fixed, leave it out and write the amounts to offer; with external, leave it out`,
	},
	{
		name:    "percent does not go with external",
		invalid: "offer: {external: {address: 'plugin.liqo:6001'}, percent: 50}",
		want:    `spec.offer: Invalid value: percent applies to nodes and peers: with fixed, leave it out and write the amounts to offer; with external, leave it out`,
	},
	{
		name:    "percentages do not go with external",
		invalid: "offer: {external: {address: 'plugin.liqo:6001'}, percentages: {cpu: 50}}",
		want:    `spec.offer: Invalid value: percentages apply to nodes and peers: with fixed, leave them out and write the amounts to offer; with external, leave them out`,
	},
	{
		name:    "an external source has an address",
		invalid: "offer: {external: {}}",
		want:    `spec.offer.external.address: Required value`,
	},
	{
		name: "an address is a host and a port",
		valid: []string{
			atAddress("a:1"), atAddress("10.0.0.7:65535"), atAddress("[fd00::7]:6001"), atAddress("Plugin.Example.com:6001"),
			atAddress(strings.Repeat("a.", 126) + "a:65535"),
		},
		invalid: atAddress("plugin.liqo"),
		want:    wrongAddress("plugin.liqo"),
	},
	notAnAddress("an address is not a path", "unix:///var/run/docker.sock"),
	notAnAddress("an address is not a URL", "http://plugin.liqo:6001"),
	notAnAddress("a port is at most 65535", "plugin.liqo:65536"),
	notAnAddress("a port is not 0", "plugin.liqo:0"),
	notAnAddress("an address has no spaces", "plugin .liqo:6001"),
	{
		name:    "an address is not longer than a name can be",
		invalid: atAddress(strings.Repeat("a", 256) + ":600"),
		want:    `spec.offer.external.address: Too long: may not be more than 259 bytes`,
	},
	{
		name:    "the forms are Pools and Flat",
		valid:   []string{externalOffer("form: Pools"), externalOffer("form: Flat")},
		invalid: externalOffer("form: flat"),
		want:    `spec.offer.external.form: Unsupported value: "flat": supported values: "Pools", "Flat"`,
	},
	{
		name:    "an answer takes at least a second",
		valid:   []string{externalOffer("timeoutSeconds: 1")},
		invalid: externalOffer("timeoutSeconds: 0"),
		want:    `spec.offer.external.timeoutSeconds: Invalid value: 0: spec.offer.external.timeoutSeconds in body should be greater than or equal to 1`,
	},
	{
		name:    "an answer takes at most 30 seconds",
		valid:   []string{externalOffer("timeoutSeconds: 30")},
		invalid: externalOffer("timeoutSeconds: 31"),
		want:    `spec.offer.external.timeoutSeconds: Invalid value: 31: spec.offer.external.timeoutSeconds in body should be less than or equal to 30`,
	},
	{
		name:    "a failure keeps or zeroes",
		valid:   []string{externalOffer("onFailure: Keep"), externalOffer("onFailure: Zero")},
		invalid: externalOffer("onFailure: Drop"),
		want:    `spec.offer.external.onFailure: Unsupported value: "Drop": supported values: "Keep", "Zero"`,
	},
	{
		name:    "tls needs authorities",
		invalid: externalOffer("tls: {}"),
		want:    `spec.offer.external.tls.caBundle: Required value`,
	},
	{
		name:    "authorities are in PEM",
		valid:   []string{externalOffer("tls: {caBundle: '" + certificate + "'}")},
		invalid: externalOffer("tls: {caBundle: /etc/ca.pem}"),
		want:    `spec.offer.external.tls.caBundle: Invalid value: "/etc/ca.pem": caBundle is certificates in PEM: write them from -----BEGIN CERTIFICATE----- on`,
	},
	{
		name:    "authorities are not too long",
		invalid: externalOffer("tls: {caBundle: '" + certificate + strings.Repeat("a", 32768) + "'}"),
		want:    `spec.offer.external.tls.caBundle: Too long: may not be more than 32768 bytes`,
	},
	{
		name: "a server name is a name or an address",
		valid: []string{
			serverName("plugin.example.com"), serverName("10.0.0.7"), serverName("::1"), serverName("fd00::7"),
		},
		invalid: serverName("*.example.com"),
		want: `spec.offer.external.tls.serverName: Invalid value: "*.example.com": serverName is a DNS name or an IP address: ` +
			`write the one in the certificate, such as plugin.example.com`,
	},
	{
		name:    "a server name is not too long",
		invalid: serverName(strings.Repeat("a", 254)),
		want:    `spec.offer.external.tls.serverName: Too long: may not be more than 253 bytes`,
	},
}

func serverName(name string) string {
	return externalOffer(fmt.Sprintf("tls: {caBundle: '%s', serverName: '%s'}", certificate, name))
}
