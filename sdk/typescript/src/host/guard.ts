// Keeps the worker alive: a tool can't end it, and what nobody catches is told.

import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import { deno, runtimeName } from "./runtime.js";

/** A call that runs. */
export interface Running {
  /** Ends it with an error, if it has not ended. */
  fail(error: unknown): void;
}

const here = new AsyncLocalStorage<Running>();
const running = new Set<Running>();

/** Thrown where code of a tool would end the process. */
export class LeavingError extends Error {
  override name = "Error";

  constructor(readonly call: string) {
    super(`the tool called ${call}: a tool returns or throws, it does not end its worker`);
  }
}

/** Node always knows whose error it is. Bun forgets it for rejected promises, Deno for timers. */
const exact = runtimeName === "Node";

/** The running call that was alone when it began. On Node it needs no mark, and marks make every promise dearer. */
let alone: Running | undefined;
let marked = false;

export function runIn(call: Running, work: () => void): void {
  running.add(call);
  if (exact && running.size === 1) {
    alone = call;
    work();
    return;
  }
  marked = exact;
  here.run(call, work);
}

/** Whether other calls run. */
export function isBusy(): boolean {
  return running.size > 0;
}

export function ended(call: Running): void {
  running.delete(call);
  if (alone === call) alone = undefined;
  if (marked && running.size === 0) {
    marked = false;
    here.disable();
  }
}

export function standGuard(): void {
  const leave = (name: string) => (code?: unknown): never => {
    throw new LeavingError(`${name}(${code === undefined ? "" : String(code)})`);
  };
  process.exit = leave("process.exit") as typeof process.exit;
  if (deno) deno.exit = leave("Deno.exit");
  process.on("uncaughtException", (error) => uncaught(error, "an exception"));
  process.on("unhandledRejection", (reason) => uncaught(reason, "a rejected promise"));
  // Frames of libraries are cut out of what is told: the user's own lie below them.
  Error.stackTraceLimit = 30;
  quiet();
}

/**
 * The call that it belongs to fails. What has no mark belongs to the call without one, or to the only one. Where
 * several could be meant, none is blamed.
 */
function uncaught(error: unknown, what: string): void {
  const call = here.getStore() ?? alone ?? (running.size === 1 ? [...running][0] : undefined);
  if (call !== undefined && running.has(call)) {
    call.fail(error);
    return;
  }
  const whose = "outside of a call, or of one that is not known";
  process.stderr.write(`toolcrib: ${what} that nobody caught, ${whose}: ${inspect(error)}\n`);
}

/** What the host itself uses needs no warning in the tool's log. */
function quiet(): void {
  const warn = process.emitWarning.bind(process) as (...given: unknown[]) => void;
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    if (/^(?:VM Modules|vm\.USE_MAIN_CONTEXT)/.test(String(warning))) return;
    warn(warning, ...rest);
  }) as typeof process.emitWarning;
}
