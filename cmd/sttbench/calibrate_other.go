//go:build !linux

package main

import "os/exec"

func endWithUs(*exec.Cmd) {}
