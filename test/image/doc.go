// Package image tests the container image. It pushes the image to a registry on the loopback device
// and reads it back.
package image
