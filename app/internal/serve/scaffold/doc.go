// Package scaffold writes the files of a new server: the program, its test, its module and what
// runs the test in continuous integration.
package scaffold
