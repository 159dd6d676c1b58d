// Package offer works out what each consumer is offered: policies x capacity x consumers -> offers, each with the steps that led
// to it. The package is pure: it knows no API client, clock or log, and the same input gives the same result.
package offer
