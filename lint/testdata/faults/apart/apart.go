// Package apart is a module outside the workspace.
package apart

func unusedFunction() {} // want unused
