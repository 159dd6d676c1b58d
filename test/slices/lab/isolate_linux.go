package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolatedEnv marks the process that Isolate has started.
const isolatedEnv = "PROFFER_LAB_ISOLATED"

// Isolated says whether this process is the one in the namespaces.
func Isolated() bool { return os.Getenv(isolatedEnv) != "" }

// Isolate runs this program again, with the same arguments, as the first process of new namespaces for the network and for
// processes, and returns its exit status. When that process ends the kernel ends all that it has started, and it ends with us.
// Without the right to make namespaces it makes one for users too, which needs none on most systems.
func Isolate(env ...string) (code int, err error) {
	// The signal at our death is sent when the thread that started the child ends: this one stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Whoever ends us early ends the child, and we still see it end.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(ended)

	cmd, err := startIsolated(env, 0)
	if errors.Is(err, os.ErrPermission) {
		cmd, err = startIsolated(env, syscall.CLONE_NEWUSER)
	}
	if err != nil {
		return 1, fmt.Errorf("no namespaces of its own for the network and for processes: %w; "+
			"run this as root or where the kernel lets users make namespaces (user.max_user_namespaces, a container's seccomp profile)", err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-ended:
			_ = cmd.Process.Kill()
		case <-over:
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return cmd.ProcessState.ExitCode(), err
}

func startIsolated(env []string, more uintptr) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := command(program, os.Args[1:]...)
	cmd.Env = append(append(os.Environ(), isolatedEnv+"=1"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | more,
		Pdeathsig:  syscall.SIGKILL,
	}
	if more&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return cmd, cmd.Start()
}

// loopback brings the loopback device up. It is down in a new namespace.
func loopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring the loopback device up: %w", err)
	}
	return nil
}
