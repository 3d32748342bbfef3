// Package gemini is a client of Google's Gemini models: version v1beta of the Gemini API,
// models/NAME:streamGenerateContent, as https://ai.google.dev/api/generate-content describes it.
//
// Gemini 3 refuses a conversation in which a call has lost its thought signature
// (https://ai.google.dev/gemini-api/docs/thought-signatures). A signature, and the call's own
// ID, are kept as [host.Reasoning] right before the call, and joined with it again when the
// conversation is sent.
package gemini
