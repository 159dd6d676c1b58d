//go:build !linux

package bench

import (
	"errors"
	"time"
)

var errNotLinux = errors.New("what a process uses is read from Linux: measure this there")

func cpuOf(int) (time.Duration, error) { return 0, errNotLinux }

func residentOf(int) (resident, error) { return resident{}, errNotLinux }
