package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf returns the CPU time that all threads of a process have used.
func cpuOf(pid int) (time.Duration, error) {
	// The ID of a process's CPU clock, as clock_getcpuclockid computes it.
	const scheduled = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &t); err != nil {
		return 0, fmt.Errorf("the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// residentOf returns the memory of a process.
func residentOf(pid int) (resident, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return resident{}, err
	}
	var r resident
	fields := map[string]*float64{"VmRSS": &r.now, "VmHWM": &r.peak}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		field := fields[name]
		if field == nil {
			continue
		}
		kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return resident{}, fmt.Errorf("%s of process %d: %w", name, pid, err)
		}
		*field = kb * 1024
	}
	if r.now == 0 || r.peak == 0 {
		return resident{}, fmt.Errorf("process %d no longer has memory", pid)
	}
	return r, nil
}
