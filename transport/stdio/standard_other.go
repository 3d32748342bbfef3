//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package stdio

import "os"

// takeStandard exchanges the variable os.Stdout: there is no deeper way here.
func takeStandard() (*standard, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return &standard{
		in:  interruptible(os.Stdin),
		out: out,
		restore: func() error {
			os.Stdout = out
			return nil
		},
	}, nil
}
