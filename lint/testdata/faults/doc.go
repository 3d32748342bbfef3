// Package faults has one fault of each kind, at lines that say so.
package faults
