package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isolatedEnv marks the process that Isolate started.
const isolatedEnv = "PROFFER_LAB_ISOLATED"

// Isolated reports whether this process runs in the namespaces.
func Isolated() bool { return os.Getenv(isolatedEnv) != "" }

// Isolate runs this program again, with the same arguments and env, as the first process of new
// network and process namespaces, and returns its exit status. When that process ends, the kernel
// ends everything that it started. It also ends with this process. If creating namespaces is not
// permitted, Isolate adds a user namespace, which needs no privileges on most systems.
func Isolate(env ...string) (code int, err error) {
	// Pdeathsig is sent when the thread that started the child ends, so this thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// On an interrupt, kill the child and still wait for it.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(ended)

	cmd, err := startIsolated(env, 0)
	if errors.Is(err, os.ErrPermission) {
		cmd, err = startIsolated(env, syscall.CLONE_NEWUSER)
	}
	if err != nil {
		return 1, fmt.Errorf("cannot create network and process namespaces: %w; run this as root "+
			"or where the kernel lets users create namespaces (user.max_user_namespaces, a container's seccomp profile)", err)
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

// endAll ends and awaits all other processes of the namespaces. Where only the kernel ends them, nobody
// learns how much processor time they took. A goroutine may still start one.
func endAll() {
	for {
		_ = unix.Kill(-1, unix.SIGKILL) // It spares the first process, which is this one.
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		if pid == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// loopback brings the loopback device up, which is down in a new namespace.
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

// labLock is the file that lock keeps open.
var labLock *os.File

// lock locks a file until this process ends. It calls waiting if another process holds it.
func lock(path string, waiting func()) (err error) {
	if labLock, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	descriptor := int(labLock.Fd())
	err = unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		waiting()
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(descriptor, unix.LOCK_EX)
		}
	}
	if err != nil {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	return err
}
