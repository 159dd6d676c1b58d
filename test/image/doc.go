// Package image holds the test of the container image: it is pushed to a registry on the loopback device and read back.
package image
