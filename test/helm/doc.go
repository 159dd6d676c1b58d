// Package helm tests charts/proffer with the commands of Helm itself: the chart installs the same
// objects as config, each value has its effect, wrong values are refused, and a release can be
// upgraded, rolled back and uninstalled.
package helm
