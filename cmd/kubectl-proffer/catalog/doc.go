// Package catalog is the command kubectl proffer catalog, for consumers: what each provider of this
// cluster would grant it now, and how to ask for it.
package catalog
