// Package policy turns ResourcePolicy objects into values of the core, and what the core reports of them
// into conditions. Everything in it is pure.
package policy
