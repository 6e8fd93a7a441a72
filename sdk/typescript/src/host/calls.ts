// Runs calls: parses the arguments, hands them to the tool, answers.

import { setImmediate } from "node:timers";
import { send, sendSoon } from "./channel.js";
import { cancel, makeContext, type Call } from "./context.js";
import type { Tool } from "./describe.js";
import { INVALID_ARGUMENTS, TOOL_FAILED, tellIssues, toolFailure, type Failure } from "./failure.js";
import { ended, isBusy, runIn, type Running } from "./guard.js";
import { resultJson } from "./result.js";
import type { Parsed } from "./schema.js";
import { isObject, type Script } from "./script.js";

const calls = new Map<unknown, RunningCall>();

export function answerError(id: unknown, error: Failure): void {
  answer(`{"jsonrpc":"2.0","id":${JSON.stringify(id ?? null)},"error":${failureJson(error)}}`);
}

/** Where other calls run, their answers may go out in the same write. */
function answer(line: string): void {
  if (isBusy()) sendSoon(line);
  else send(line);
}

/** An error may carry what can't be written; its words can. */
function failureJson(error: Failure): string {
  try {
    return JSON.stringify(error);
  } catch {
    return JSON.stringify({ code: error.code, message: error.message });
  }
}

/** The `cancel` of Toolcrib; a call that has ended needs none. */
export function cancelCall(id: unknown): void {
  const call = calls.get(id);
  if (call) cancel(call);
}

class RunningCall implements Call, Running {
  ended = false;
  cancelled = false;
  controller: AbortController | undefined;

  constructor(
    readonly id: unknown,
    readonly script: Script,
  ) {
    calls.set(id, this);
  }

  run(tool: Tool, input: Record<string, unknown>, context: Record<string, unknown>): void {
    const work = (parsed: Parsed): unknown => {
      if ("issues" in parsed) return this.refuse(parsed.issues);
      return tool.execute(parsed.value, makeContext(this, context, this.script));
    };
    const parsed = tool.parse ? tool.parse(input) : { value: input };
    const result: unknown = parsed instanceof Promise ? parsed.then(work) : work(parsed);
    if (isThenable(result)) result.then((value) => this.succeed(value), (error: unknown) => this.fail(error));
    else this.succeed(result);
  }

  /** The thread is free, though the call has not ended: the next may come. */
  tellWaiting(): void {
    if (!this.ended) send(`{"jsonrpc":"2.0","method":"waiting","params":{"id":${JSON.stringify(this.id)}}}`);
  }

  private refuse(issues: { path: PropertyKey[]; message: string }[]): void {
    const told = issues.map(({ path, message }) => ({ path, message }));
    this.end({ code: INVALID_ARGUMENTS, message: tellIssues(issues), data: { issues: told } });
  }

  private succeed(result: unknown): void {
    if (this.ended) return;
    let json;
    try {
      json = resultJson(result);
    } catch (error) {
      this.fail(error);
      return;
    }
    this.leave();
    answer(`{"jsonrpc":"2.0","id":${JSON.stringify(this.id)},"result":${json}}`);
  }

  fail(error: unknown): void {
    const aborted = this.cancelled && (error as { name?: string } | null)?.name === "AbortError";
    this.end(aborted ? { code: TOOL_FAILED, message: "cancelled" } : toolFailure(error, this.script));
  }

  private end(failure: Failure): void {
    if (this.ended) return;
    this.leave();
    answerError(this.id, failure);
  }

  private leave(): void {
    this.ended = true;
    calls.delete(this.id);
    ended(this);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

/** Starts one call; the answer comes when it ends. */
export function execute(id: unknown, params: unknown, tools: Map<string, Tool>, script: Script): void {
  const { tool: name, input, context } = isObject(params) ? params : {};
  const tool = typeof name === "string" ? tools.get(name) : tools.size === 1 ? [...tools.values()][0] : undefined;
  if (!tool) {
    const known = [...tools.keys()].join(", ") || "none";
    answerError(id, { code: INVALID_ARGUMENTS, message: `there is no tool ${JSON.stringify(name)} here; there is: ${known}` });
    return;
  }
  if (!isObject(input)) {
    answerError(id, { code: INVALID_ARGUMENTS, message: "params.input is not an object" });
    return;
  }
  const call = new RunningCall(id, script);
  runIn(call, () => {
    try {
      call.run(tool, input, isObject(context) ? context : {});
    } catch (error) {
      call.fail(error);
    }
  });
  // What follows at once, a promise that is kept already, still belongs to its turn.
  if (!call.ended) setImmediate(() => call.tellWaiting());
}
