// Package panel shows a question of a session in a part of a terminal screen and turns keys
// into its answer. What a question says and how it can be answered is the wording of
// app/internal/ui; this package lays it out, and lets the person edit, choose and fill in.
//
// A Panel is part of a bubbletea program: the screen that holds it passes messages to
// Update and draws View. It is for one goroutine.
package panel
