// model-anthropic.mjs URL: Anthropic's client asks the server at URL what the test's other
// clients ask it, and prints what it reads as JSON.
import Anthropic from "@anthropic-ai/sdk";

const keep = { type: "ephemeral" };
const image = Buffer.from("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "latin1").toString("base64");
const client = new Anthropic({ baseURL: process.argv[2], apiKey: "sk-1", maxRetries: 0 });

const stream = client.messages.stream({
  model: "claude-test-1",
  max_tokens: 3000,
  stop_sequences: ["END"],
  system: [{ type: "text", text: "Be brief.", cache_control: keep }],
  thinking: { type: "adaptive", display: "summarized" },
  output_config: { effort: "low" },
  tools: [
    {
      name: "weather",
      description: "Tells the <weather>.",
      cache_control: keep,
      input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  ],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "Where is it?" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: image }, cache_control: keep },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Two <places> & more", signature: "EqQB+/==" },
        { type: "redacted_thinking", data: "Emw=" },
        { type: "text", text: "Two places." },
        { type: "tool_use", id: "c1", name: "weather", input: { city: "Zürich" } },
        { type: "tool_use", id: "c2", name: "weather", input: { city: "Bern" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "sunny" }] },
        {
          type: "tool_result",
          tool_use_id: "c2",
          is_error: true,
          content: [{ type: "text", text: "no answer" }],
          cache_control: keep,
        },
      ],
    },
  ],
});

const message = await stream.finalMessage();
const usage = message.usage;
const read = usage.cache_read_input_tokens ?? 0;
const written = usage.cache_creation_input_tokens ?? 0;
const of = (...types) => message.content.filter((block) => types.includes(block.type));
console.log(
  JSON.stringify({
    Text: of("text").map((block) => block.text).join(""),
    Calls: of("tool_use").map(({ id, name, input }) => ({ ID: id, Name: name, Input: input })),
    Reasoning: of("thinking", "redacted_thinking"),
    Input: usage.input_tokens + read + written,
    Output: usage.output_tokens,
    Read: read,
    Written: written,
    Stop: { end_turn: "end", tool_use: "calls", stop_sequence: "sequence" }[message.stop_reason],
  }),
);
