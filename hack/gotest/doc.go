// Package gotest holds the scripts behind make test and make unit, and their test.
package gotest
