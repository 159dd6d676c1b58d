// Package image tests the container image and the files of a release. It pushes the image to a
// registry on the loopback device and reads it back, and makes a release twice.
package image
