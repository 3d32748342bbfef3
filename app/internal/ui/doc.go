// Package ui is what all faces of a session share: the plan of a form, markdown as
// a tree of allowed nodes, and the wording of questions and records; and the face for
// plain terminals, which shows whole sentences and reads lines.
//
// Everything that a server or the model says is shown escaped and marked as untrusted:
// no control character, no hidden or reversing character of theirs is shown as such.
package ui
