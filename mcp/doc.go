// Package mcp is the vocabulary of the Model Context Protocol: its messages and
// types as the newest revision (2026-07-28) says them, its methods, its codes.
// It does no input or output.
//
// Older revisions are spoken with the same types. What only they know (the
// initialize handshake, ping, logging/setLevel, resources/subscribe, elicitation
// ids) is here too and says so; what they do not know is translated or left out
// by the library on the way. A handler never sees the difference.
//
// Three conventions hold throughout.
//
//   - Absent is not zero: where the protocol tells them apart, a field is a
//     pointer, a nil slice or a nil map. A plain bool or string whose zero value
//     means the same as its absence is left out of the JSON when it is zero.
//   - JSON that belongs to users (arguments, schemas, structured content) is a
//     [RawValue]: valid JSON, not interpreted here.
//   - Messages with `_meta` embed a base ([RequestBase], [NotificationBase],
//     [ResultBase]), so that p.Meta works on each of them.
//
// The core tasks of 2025-11-25 (tasks/get, tasks/list, tasks/result, tasks/cancel,
// notifications/tasks/status and the members task and execution) were an experiment
// that the newest revision took out of the core. They have no types here;
// capabilities keep such members in Extra.
//
// Values are plain data: they may be read by many goroutines at once and are
// written by the code that made them.
package mcp
