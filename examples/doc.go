// Package examples holds a runnable program for each page of the guide in
// docs/guide, and the test that keeps the pages true: what they show of Go is
// in these programs, and the commands that they show are run.
//
// The module stands outside the workspace, so that no user of the library
// gets what some of the programs need.
package examples
