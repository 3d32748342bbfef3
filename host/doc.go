// Package host lets a model use the tools of many MCP servers, while the person it works for
// stays in control.
//
// A [Host] has the servers. Each is started when it is first needed and started again when its
// connection ends; [Host.Catalog] tells at any moment which tools there are, under names that
// a model accepts, and no server can hold it up. A [Session] is one conversation of the person
// with a [Model]: [Session.Send] begins a run, in which the model answers or asks for calls,
// each call is authorized, carried out and reported back, until the model has its answer or a
// budget is spent.
//
// # The log
//
// A session is a log of numbered records ([Record]), which are written once to a [Store] and
// never changed: messages, turns, calls, questions, answers, results and notices. Everything
// else is computed from it: what the model is sent, which calls and questions are open, the
// labels. A face, such as a terminal or a page, shows records ([Session.Watch]) and settles
// questions ([Session.Answer]); several may share a session, and the first answer counts.
// [Host.OpenSession] goes on where another process ended, and [Session.Fork] goes on from a
// record in a session of its own. A call that was sent is never sent again.
//
// # Consent
//
// A call is decided in this order: a rule of the [policy.Policy] that denies; flow labels,
// which ask when the conversation has read private data and untrusted input and the call can
// send data out; rules that ask or allow; grants, with which the person agreed to more than
// one call; the person. A tool whose [Definition] differs from the one that the person agreed
// to asks before all of that. Samplings, forms, pages and roots of servers are questions of
// the same log. A page that a server shows beside the conversation ([Session.Page]) calls
// tools of its server by the same way ([Session.CallForPage]).
//
// What servers and models say is untrusted. Descriptions and titles are shown and decide
// nothing; annotations count only for servers that the person declared to be trusted. What a
// face prints goes through [Escape] first.
package host
