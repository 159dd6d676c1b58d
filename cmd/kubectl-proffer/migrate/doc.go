// Package migrate is the command kubectl proffer migrate. It turns the Deployment of one of the two
// resource plugins of Liqo v0.6 to v0.10, fixed-resources and node-labels-resources, into a
// ResourcePolicy that offers the same.
//
// Convert is the pure part: a Deployment in, a manifest with comments out. It parses the arguments
// by the flags that the plugin itself defines, and refuses arguments that the plugin does not have.
package migrate
