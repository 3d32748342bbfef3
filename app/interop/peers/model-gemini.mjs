// A conversation with a model through Google's client, for model_gemini_test.go:
//
//   GEMINI_API_KEY=… node model-gemini.mjs URL
//
// It asks, answers the calls, and prints what it read of the first turn.

import { GoogleGenAI } from '@google/genai';

const ai = new GoogleGenAI({
  apiKey: process.env.GEMINI_API_KEY,
  vertexai: false,
  httpOptions: { baseUrl: process.argv[2], apiVersion: 'v1beta' },
});

const chat = ai.chats.create({
  model: 'gemini-3-pro',
  config: {
    systemInstruction: { parts: [{ text: 'Answer <briefly>.' }] },
    temperature: 0.25,
    maxOutputTokens: 100,
    stopSequences: ['END'],
    thinkingConfig: { includeThoughts: true },
    tools: [
      {
        functionDeclarations: [
          {
            name: 'weather__get',
            description: 'Reads the weather.',
            parameters: {
              type: 'OBJECT',
              properties: { city: { type: 'STRING' }, days: { type: 'INTEGER', minimum: 1 } },
              required: ['city'],
            },
          },
          { name: 'clock__now', description: 'Tells the time.' },
        ],
      },
    ],
  },
});

const base64 = (text) => Buffer.from(text, 'latin1').toString('base64');
const turn = { Text: '', Thought: '', Calls: null, Usage: {}, Stop: 'end' };
const calls = [];

const question = [
  { text: 'What is it like there?' },
  { inlineData: { mimeType: 'image/png', data: base64('\x89PNG\r\n\x1a\n') } },
  { inlineData: { mimeType: 'audio/wav', data: base64('RIFF') } },
];
for await (const chunk of await chat.sendMessageStream({ message: question })) {
  for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
    if (part.functionCall) calls.push(part.functionCall);
    else if (part.thought) turn.Thought += part.text;
    else turn.Text += part.text ?? '';
  }
  const usage = chunk.usageMetadata;
  if (usage) {
    turn.Usage = {
      input: usage.promptTokenCount ?? 0,
      output: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
      cacheRead: usage.cachedContentTokenCount ?? 0,
    };
  }
}
if (calls.length > 0) {
  turn.Calls = calls.map(({ name, args }) => ({ Name: name, Args: args }));
  turn.Stop = 'calls';
}

const texts = ['of {"city":"Paris","days":1.0,"unit":"\\u00b0C"}', 'of {"city":"München"}', 'of {}'];
const results = calls.map(({ id, name }, i) => ({
  functionResponse: {
    id,
    name,
    response: { [name === 'clock__now' ? 'error' : 'output']: texts[i] },
    parts: [{ inlineData: { mimeType: 'image/jpeg', data: base64('\xff\xd8\xff') } }],
  },
}));
for await (const _ of await chat.sendMessageStream({ message: results.length > 0 ? results : 'Go on.' })) {
  // only what is sent matters
}
console.log(JSON.stringify(turn));
