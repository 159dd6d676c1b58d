// Package page drives the operator's pages in a headless Chromium: the built plugin serves them with
// kubectl proffer dashboard, from the built operator on a real control plane.
//
// It needs Chromium: in PATH, or named by PROFFER_CHROMIUM. Screenshots are written to the ignored directory
// screenshots. With -update the two of the docs are written too.
package page
