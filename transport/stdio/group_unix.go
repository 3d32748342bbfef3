//go:build unix

package stdio

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a process group, so that what it
// starts ends with it, and Ctrl-C at the terminal does not reach it past us.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// terminateGroup asks the child and what it started to end. It does not wait
// for the group.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup ends them.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
