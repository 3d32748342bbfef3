// Package openai is a client of models that are reached over chat completions: OpenAI, and
// the servers that offer the same interface, such as Ollama, llama.cpp, vLLM, LM Studio and
// OpenRouter.
//
// Where they differ, the client goes by what they answer: reasoning returns in the members
// that it came in, and a parameter that a model refuses is left out of the next request. The
// few facts that must be known before are a table by host name, in server.go.
//
// The interface is described at https://platform.openai.com/docs/api-reference/chat and in
// the OpenAPI document of https://github.com/openai/openai-openapi.
package openai
