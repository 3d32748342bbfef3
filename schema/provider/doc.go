// Package provider reduces JSON Schemas of tools to what providers of models take.
//
// A tool's input schema may be any JSON Schema, and each provider refuses some. A
// [Profile] says which keywords a provider takes; [Anthropic], [OpenAI] and
// [Gemini] are rows of one table with their sources. [Reduce] rewrites a schema for
// a profile.
package provider
