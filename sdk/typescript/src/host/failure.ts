// What went wrong in a tool, in the words that an agent reads.

import { isObject, type Script } from "./script.js";
import { runtimeName } from "./runtime.js";
import { traceback } from "./trace.js";

/** The `error` of an answer. */
export interface Failure {
  code: number;
  message: string;
  data?: Record<string, unknown>;
}

export const INVALID_ARGUMENTS = -32602;
export const TOOL_FAILED = -32001;
export const NOT_LOADED = -32002;

/** An exception of a tool, as the call's answer. */
export function toolFailure(error: unknown, script: Script): Failure {
  const trace = traceback(error, script);
  const data = { ...(trace === "" ? {} : { traceback: trace }), ...systemCall(error) };
  return { code: TOOL_FAILED, message: words(error), ...(Object.keys(data).length > 0 ? { data } : {}) };
}

/** The exception's own words, with its type where that helps, and what caused it. */
export function words(error: unknown, depth = 0): string {
  if (typeof error === "string") return error === "" ? "the tool failed without a word" : error;
  if (!isErrorLike(error)) return `the tool threw ${show(error)}`;
  const issues = issuesOf(error);
  if (issues) return issues;
  const { name, message, cause, errors } = error;
  let text = message === "" ? (name ?? "Error") : message;
  if (name && name !== "Error" && message !== "" && !message.startsWith(name)) text = `${name}: ${message}`;
  const missing = /^(Bun|Deno) is not defined/.exec(message)?.[1];
  if (missing) text += `. ${needs(missing)}`;
  const deeper = cause ?? (message === "" ? errors?.[0] : undefined);
  if (deeper === undefined || deeper === null || depth > 3) return text;
  const more = words(deeper, depth + 1);
  return text.includes(more) ? text : `${text}: ${more}`;
}

/** Says plainly that a file was written for another runtime. */
export function needs(runtime: string): string {
  const where = runtime === "Bun" ? "https://bun.sh" : "https://deno.com";
  const instead = `Install ${runtime} (${where}), or use what ${runtimeName} has instead`;
  return `This tool needs ${runtime}, and it runs on ${runtimeName}. ${instead}`;
}

interface ErrorLike {
  name?: string;
  message: string;
  cause?: unknown;
  errors?: unknown[];
  code?: unknown;
  path?: unknown;
  syscall?: unknown;
  stack?: string;
  hostname?: unknown;
  address?: unknown;
  port?: unknown;
  issues?: unknown;
}

function isErrorLike(error: unknown): error is ErrorLike {
  return typeof error === "object" && error !== null && typeof (error as ErrorLike).message === "string";
}

function show(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

/** One finding of Zod, of any version. */
export interface Issue {
  path: PropertyKey[];
  message: string;
}

function issuesOf({ name, issues }: ErrorLike): string | undefined {
  return name?.includes("Zod") && Array.isArray(issues) ? tellIssues(issues as Issue[]) : undefined;
}

/** Each with the path of the value that it is about. */
export function tellIssues(issues: Issue[]): string {
  return issues.map(({ path, message }) => (path.length === 0 ? message : `\`${tellPath(path)}\`: ${message}`)).join("; ");
}

export function tellPath(path: PropertyKey[]): string {
  return path
    .map((step, at) => (typeof step === "number" ? `[${step}]` : `${at === 0 ? "" : "."}${String(step)}`))
    .join("");
}

interface SystemCall {
  errno?: string;
  path?: string;
  host?: string;
  tried?: Tried;
}

type Tried = "read" | "write" | "mkdir" | "remove" | "run" | "connect";

/** System calls by their names in Node's errors, and what they try; `open` may be either. */
const TRIES: [Tried, RegExp][] = [
  ["run", /^(?:spawn|exec|posix_spawn|uv_spawn)/],
  ["connect", /^(?:connect|getaddrinfo|bind|listen|send)/],
  ["mkdir", /^mkdir/],
  ["remove", /^(?:unlink|rmdir|rm|rename)/],
  ["write", /^(?:write|truncate|ftruncate|symlink|link|copyfile|chmod|utime)/],
  ["read", /^(?:read|scandir|opendir|stat|lstat|readlink|access)/],
];

function triedBy({ syscall, stack }: ErrorLike): Tried | undefined {
  if (typeof syscall !== "string") return undefined;
  if (syscall === "open") {
    if (/\b(?:writeFile|appendFile|createWriteStream|WriteStream)/.test(stack ?? "")) return "write";
    return /\b(?:readFile|createReadStream|ReadStream)/.test(stack ?? "") ? "read" : undefined;
  }
  return TRIES.find(([, names]) => names.test(syscall))?.[0];
}

const DENO_NAMES: Record<string, string> = { NotFound: "ENOENT", PermissionDenied: "EACCES", NotCapable: "EPERM" };

/** What the system refused: its name for the error, what was tried, and the file or host. */
export function systemCall(error: unknown, depth = 0): SystemCall {
  if (!isErrorLike(error) || depth > 4) return {};
  const { code, path, hostname, address, port, cause, errors, name } = error;
  const errno = typeof code === "string" && /^E(?!RR_)[A-Z0-9]+$/.test(code) ? code : DENO_NAMES[name ?? ""];
  if (errno !== undefined) {
    const host = typeof hostname === "string" ? hostname : typeof address === "string" ? address : undefined;
    const withPort = host !== undefined && typeof port === "number" ? `${host}:${port}` : host;
    const tried = triedBy(error);
    return {
      errno,
      ...(typeof path === "string" ? { path } : {}),
      ...(tried === undefined ? {} : { tried }),
      ...(withPort === undefined ? {} : { host: withPort }),
    };
  }
  for (const deeper of [cause, ...(Array.isArray(errors) ? errors : [])]) {
    const found = systemCall(deeper, depth + 1);
    if (found.errno !== undefined) return found;
  }
  return {};
}

/** The words of an error that is no object too. */
export function messageOf(error: unknown): string {
  return isObject(error) || error instanceof Error ? String((error as Error).message) : String(error);
}
