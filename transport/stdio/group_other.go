//go:build !unix

package stdio

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// terminateGroup does nothing: the only signal here is the end.
func terminateGroup(*exec.Cmd) {}

// killGroup ends the child. Processes that it started are not known.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
