// The host: loads one tool file and answers calls of its tools, in Toolcrib's worker protocol 1.1.
// docs/reference/worker-protocol.md says what is asked and answered.

import { answerError, cancelCall, execute } from "./calls.js";
import { listen, send, takeOver } from "./channel.js";
import { describe, type Tool } from "./describe.js";
import { leadFetchThroughProxy } from "./fetch.js";
import { standGuard } from "./guard.js";
import { load } from "./load/index.js";
import { loadFailure } from "./refusal.js";
import { isObject, readScript, type Script } from "./script.js";

/** Calls at once: tools mostly wait. */
const CONCURRENCY = 16;

let script: Script | undefined;
let tools = new Map<string, Tool>();

function answer(id: unknown, result: unknown): void {
  send(JSON.stringify({ jsonrpc: "2.0", id, result }));
}

async function initialize(id: unknown, params: unknown): Promise<void> {
  const given = readScript(isObject(params) ? params["script"] : undefined);
  if (typeof given === "string") {
    answerError(id, { code: -32602, message: given });
    return;
  }
  try {
    const described = await describe(await load(given), given);
    script = given;
    tools = described.tools;
    answer(id, {
      protocolVersion: "1.1",
      // One that must be alone is alone in its file: its neighbours share the one thread.
      concurrency: Math.min(CONCURRENCY, ...[...tools.values()].map(({ concurrency }) => concurrency ?? CONCURRENCY)),
      // There is one thread: it takes the next call when the last has ended or waits.
      turns: true,
      tools: [...tools.values()].map(({ spec }) => spec),
      problems: described.problems,
    });
  } catch (error) {
    answerError(id, loadFailure(error, given));
  }
}

function take(line: string): void {
  if (line.trim() === "") return;
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    answerError(null, { code: -32700, message: "the line is not JSON" });
    return;
  }
  if (!isObject(message) || typeof message["method"] !== "string") {
    const id = isObject(message) ? message["id"] : null;
    answerError(id, { code: -32600, message: "a message is an object with a method" });
    return;
  }
  const { id, method, params } = message;
  if (id === undefined) {
    if (method === "cancel" && isObject(params)) cancelCall(params["id"]);
    return;
  }
  switch (method) {
    case "execute":
      if (script) execute(id, params, tools, script);
      else answerError(id, { code: -32602, message: "there are no tools yet: initialize has not loaded a file" });
      return;
    case "initialize":
      void initialize(id, params);
      return;
    case "health":
      answer(id, { status: "healthy" });
      return;
    default:
      answerError(id, { code: -32601, message: `there is no method "${method}"` });
  }
}

takeOver();
standGuard();
leadFetchThroughProxy();
listen(take);
