// Why a file can't be loaded: the kind of error, its place, and what helps.

import { basename } from "node:path";
import { messageOf, needs, NOT_LOADED, systemCall, words, type Failure } from "./failure.js";
import { LeavingError } from "./guard.js";
import { UnfitRuntime } from "./load/vm.js";
import { runtimeName } from "./runtime.js";
import { isBare, type Script } from "./script.js";
import { codeOf, original } from "./source-map.js";
import { placeOf } from "./trace.js";

export type ErrorType = "SyntaxError" | "ImportError" | "ValidationError" | "Timeout" | "IoError";

interface Refusal {
  errorType: ErrorType;
  message: string;
  hint: string;
  /** Where the file says what can't be had, where the error itself does not tell. */
  line?: number;
}

/** The answer to `initialize` when loading threw this. */
export function loadFailure(error: unknown, script: Script): Failure {
  const { errorType, message, hint, line } = refusal(error, script);
  const place = line === undefined ? placeOf(error, script) : { file: script.file, line, column: undefined };
  const elsewhere = place !== undefined && place.file !== script.file;
  const where = place === undefined || elsewhere ? {} : { line: place.line, column: place.column };
  const told = elsewhere ? `${message} (${basename(place.file)}, line ${place.line})` : message;
  return { code: NOT_LOADED, message: told, data: { errorType, hint, ...where } };
}

function refusal(error: unknown, script: Script): Refusal {
  const file = basename(script.file);
  const message = messageOf(error);
  const name = (error as { name?: string } | null)?.name ?? "";
  const foreign = /^(Bun|Deno) is not defined/.exec(message)?.[1] ?? foreignImport(message);
  if (foreign !== undefined && foreign !== runtimeName)
    return {
      errorType: "ImportError",
      message: `${file} needs ${foreign}, and ${runtimeName} runs it`,
      hint: needs(foreign),
      ...lineOf(script, foreign === "Bun" ? /\bBun\b|["']bun["':]/ : /\bDeno\b/),
    };
  if (error instanceof UnfitRuntime)
    return { errorType: "ImportError", message, hint: "Start it with the flag, or use Node 22.15 or newer" };
  if (error instanceof LeavingError)
    return {
      errorType: "ImportError",
      message: `${file} called ${error.call} while it was loaded`,
      hint: "A tool file only defines its tools: take that call out, or put it into execute and throw instead",
    };
  const missingExport = /does not provide an export named|No matching export|export (?:named )?'.*' not found/i.test(message);
  if (missingExport)
    return {
      errorType: "ImportError",
      message,
      hint: "Check the name against what that module exports; a type is imported with `import type`",
    };
  const syntax = name === "SyntaxError" || name === "BuildMessage" || /could not be parsed/.test(message) || isBuild(error);
  if (syntax)
    return {
      errorType: "SyntaxError",
      message: firstWords(error),
      hint: "Fix the file and save it; it is loaded again by itself",
    };
  const specifier = missingModule(error);
  if (specifier !== undefined) return missing(specifier, script);
  if (systemCall(error).errno !== undefined && !(error as Error).stack?.includes(script.file))
    return { errorType: "IoError", message: words(error), hint: "Check that the file is there and may be read" };
  return {
    errorType: "ImportError",
    message: `${file} threw while it was loaded: ${words(error)}`,
    hint: "What stands outside of the tools runs when the file is loaded: fix it, or move it into execute",
  };
}

function isBuild(error: unknown): boolean {
  const errors = (error as { errors?: { name?: string }[] } | null)?.errors;
  return Array.isArray(errors) && errors.some((one) => one?.name === "BuildMessage");
}

/** Bun gathers what it finds: the first is told. */
function firstWords(error: unknown): string {
  const first = isBuild(error) ? (error as { errors: unknown[] }).errors[0] : error;
  return messageOf(first).split("\n")[0]!.replace(/^(?:SyntaxError: )?/, "");
}

function foreignImport(message: string): string | undefined {
  return /(?:package|module|protocol|scheme)\W+(?:'?bun'?\b|'?bun:)/i.test(message) ? "Bun" : undefined;
}

/** The specifier that nothing was found for. */
function missingModule(error: unknown): string | undefined {
  const { code, specifier } = (error ?? {}) as { code?: string; specifier?: string };
  const message = messageOf(error);
  const told = /(?:Cannot find (?:module|package)|Module not found|Unknown .*?module) ["'`]([^"'`]+)["'`]/.exec(message)?.[1];
  if (told === undefined && code !== "MODULE_NOT_FOUND" && code !== "ERR_MODULE_NOT_FOUND") return undefined;
  return specifier ?? told ?? "";
}

function missing(specifier: string, script: Script): Refusal {
  const path = /^(?:file:)?\//.test(specifier);
  const tail = specifier.split("/").at(-1)!.replace(/\.[a-z]+$/, "");
  const quoted = path ? `["'][^"']*${escape(tail)}(?:\\.[a-z]+)?["']` : `["']${escape(specifier)}(?:/[^"']*)?["']`;
  const bare = !path && isBare(specifier);
  return {
    errorType: "ImportError",
    message: `there is no module ${JSON.stringify(specifier)} for ${basename(script.file)}`,
    hint: bare ? absent(specifier) : "Check the path: it starts at the file that imports it",
    ...lineOf(script, new RegExp(quoted)),
  };
}

/** People copy what they read here, so a package's name gets into a command only if it is one. */
function absent(specifier: string): string {
  const name = /^(?:@[a-z0-9_][\w.-]*\/)?[a-z0-9_][\w.-]*/i.exec(specifier)?.[0] ?? "";
  const plain = name.length <= 214 && /^(?:$|\/[\w./-]*$)/.test(specifier.slice(name.length));
  const how = name !== "" && plain ? `: npm install ${name}` : "";
  return `Add a package.json beside the file with it in \`dependencies\`, or install it there${how}`;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

/** The first line of the file where this stands. */
export function lineOf(script: Script, pattern: RegExp): { line?: number } {
  const { text } = script.texts[script.file]!;
  const code = codeOf(text);
  const at = code.search(pattern);
  if (at < 0) return {};
  const before = code.slice(0, at).split("\n");
  return { line: original(text, { line: before.length, column: before.at(-1)!.length + 1 }).line };
}
