// Package host lets one model use the tools of many MCP servers, while the
// person it works for stays in control.
//
// A [Host] owns one client for each server, the registry of their tools under
// names that a model accepts, the [Policy] that says what may run, the
// [Consent] that asks the person about the rest, and the budgets of a run.
// [Host.Conversation] gives a conversation; [Conversation.Ask] runs the agent
// loop: the model answers or asks for tools, each call is authorized, carried out
// and reported back, until the model has its answer or a budget is spent.
//
// What servers and models say is untrusted here. Descriptions, titles and
// annotations are shown but never decide anything; every call needs a rule
// that allows it or a person who does; what a face prints goes through
// [Escape] first.
package host
