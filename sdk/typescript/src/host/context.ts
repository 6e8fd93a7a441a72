// What a tool is told about its call, in OpenCode's words and ours.

import type { ToolContext } from "../types.js";
import { send } from "./channel.js";
import { isObject, type Script } from "./script.js";

/** One `execute` on its way. */
export interface Call {
  id: unknown;
  ended: boolean;
  cancelled: boolean;
  controller: AbortController | undefined;
}

export function cancel(call: Call): void {
  call.cancelled = true;
  call.controller?.abort();
}

/** A notice about a call; after its end there is nobody to tell. */
function tell(call: Call, method: string, params: object): void {
  if (!call.ended) send(JSON.stringify({ jsonrpc: "2.0", method, params }));
}

const LEVELS = new Set(["debug", "info", "warn", "error"]);

export function makeContext(call: Call, given: Record<string, unknown>, script: Script): ToolContext {
  const word = (field: string, or = ""): string => (typeof given[field] === "string" ? given[field] : or);
  const directory = word("directory", word("workingDir", script.directory));
  const left = given["timeout"];
  return {
    sessionID: word("sessionId"),
    messageID: word("messageId"),
    callID: word("callId"),
    agent: word("agent"),
    client: word("client", word("agent")),
    profile: word("profile"),
    directory,
    worktree: word("worktree", directory),
    deadline: typeof left === "number" ? Date.now() + left : undefined,
    // Most tools never look at it, and it costs more than the rest of the context.
    get abort() {
      if (!call.controller) {
        call.controller = new AbortController();
        if (call.cancelled) call.controller.abort();
      }
      return call.controller.signal;
    },
    metadata(input) {
      if (!isObject(input)) return;
      const { title, metadata, ...rest } = input;
      const data = { ...(isObject(metadata) ? metadata : {}), ...rest };
      const words = typeof title === "string" ? { title } : {};
      tell(call, "progress", { id: call.id, ...words, ...(Object.keys(data).length > 0 ? { data } : {}) });
    },
    progress(input) {
      if (!isObject(input)) return;
      const { progress, total, message } = input;
      tell(call, "progress", { id: call.id, progress, total, message });
    },
    log(level, message) {
      tell(call, "log", { level: LEVELS.has(level) ? level : "info", message: String(message) });
    },
    ask(input) {
      // A person has seen this call and its arguments, and said yes.
      if (given["approved"] === true) return Promise.resolve();
      const what = isObject(input) && typeof input["permission"] === "string" ? ` for "${input["permission"]}"` : "";
      const hint = "Hint: list the tool in `approve_tools` of `human_in_the_loop`, so that a person is asked before it runs";
      const error = new Error(`denied: the tool asked a person${what}, and nobody approved this call. ${hint}`);
      return Promise.reject(Object.assign(error, { code: "denied" }));
    },
  };
}
