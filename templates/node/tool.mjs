#!/usr/bin/env node
// The tool TOOL_NAME. Its name and its parameters are in tool.json beside this file.

import { readFile } from "node:fs/promises";

// What the tool does: change this. It may be async; an exception is a failure.
async function run({ text, times = 1 }) {
  if (times > 100) throw new Error("a hundred times is enough");
  log(`times: ${times}`);
  return `${text}\n`.repeat(times);
}

// For people: stdout belongs to the protocol, stderr is kept as the tool's log.
function log(message) {
  console.error(message);
}

// Below is the worker protocol: one JSON-RPC message per line. It can stay as it is.

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

async function readSpec() {
  return JSON.parse(await readFile(new URL("tool.json", import.meta.url), "utf8"));
}

async function answer(method, params) {
  if (method === "initialize") {
    const { name, description, version, inputSchema } = await readSpec();
    return { name, description, version, inputSchema };
  }
  if (method === "health") return { status: "healthy" };
  if (method !== "execute") throw new Refused(-32601, `there is no method "${method}"`);
  const input = params?.input;
  if (!isObject(input)) throw new Refused(-32602, "params.input is not an object");
  for (const name of (await readSpec()).inputSchema?.required ?? [])
    if (input[name] === undefined) throw new Refused(-32602, `the parameter \`${name}\` is missing`);
  return run(input);
}

async function reply(message) {
  if (!isObject(message)) return { id: null, error: { code: -32600, message: "a message is an object" } };
  const { jsonrpc, id, method, params } = message;
  try {
    if (jsonrpc !== "2.0" || typeof method !== "string")
      throw new Refused(-32600, 'a message has "jsonrpc": "2.0" and a method');
    if (id === undefined) return; // a notification
    return { id, result: (await answer(method, params)) ?? null };
  } catch (error) {
    const code = error instanceof Refused ? error.code : -32001;
    return { id: id ?? null, error: { code, message: String(error?.message ?? error) } };
  }
}

function send(body) {
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...body }) + "\n");
}

async function take(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch (error) {
    return send({ id: null, error: { code: -32700, message: `not JSON: ${error.message}` } });
  }
  const body = await reply(message);
  if (body === undefined) return;
  try {
    send(body);
  } catch (error) { // the result can't be written as JSON
    send({ id: body.id, error: { code: -32001, message: `the result: ${error.message}` } });
  }
}

// Not `readline`: it also ends a line at U+2028, which may stand inside a JSON string.
let rest = "";
for await (const chunk of process.stdin.setEncoding("utf8")) {
  rest += chunk;
  if (!chunk.includes("\n")) continue;
  const lines = rest.split("\n");
  rest = lines.pop();
  for (const line of lines) if (line.trim()) await take(line);
}
if (rest.trim()) await take(rest);
