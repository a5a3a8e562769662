package main

import (
	"os/exec"
	"syscall"
)

// endWithUs has the kernel end a child when the thread that starts it does, so that
// none outlives a killed process. The caller stays on its thread meanwhile.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
