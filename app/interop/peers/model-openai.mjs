// OpenAI's own client reads one streamed chat completion. Standard input says where and what is
// asked; standard output says what came.
import OpenAI from 'openai';
import { text } from 'node:stream/consumers';

const { url, key, params } = JSON.parse(await text(process.stdin));
const client = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
const stream = client.chat.completions.stream(params);
let answer;
stream.on('chatCompletion', (completion) => (answer = completion));
await stream.done();
const [choice] = answer.choices;
const usage = answer.usage ?? {};
console.log(
  JSON.stringify({
    Text: choice.message.content ?? '',
    Refusal: choice.message.refusal ?? '',
    Finish: choice.finish_reason,
    Calls: choice.message.tool_calls?.map((c) => ({ ID: c.id, Name: c.function.name, Arguments: c.function.arguments })),
    Input: usage.prompt_tokens,
    Output: usage.completion_tokens,
    CacheRead: usage.prompt_tokens_details?.cached_tokens,
  }),
);
