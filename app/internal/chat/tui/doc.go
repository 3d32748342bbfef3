// Package tui is the screen of a conversation: what was said, the calls as cards that fold,
// a panel for questions and an editor for messages, on a terminal of 20 columns or more.
//
// It renders the records of a session and answers its questions, and decides nothing. What
// strangers say is shown escaped and marked. The keys of somebody who types never answer a
// question: a banner tells of it, and the person goes to its panel by a key.
package tui
