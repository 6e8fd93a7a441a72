// From what a file exports to tools, and to problems for what only looks like one.

import type { InitContext, JsonSchema } from "../types.js";
import { messageOf, words } from "./failure.js";
import { lineOf } from "./refusal.js";
import { readArguments, readOutputSchema, SchemaError, type Arguments } from "./schema.js";
import { isObject, stemOf, type Script } from "./script.js";
import { madeByTool } from "./sdk.js";
import { framesOf } from "./trace.js";

export interface Problem {
  toolName?: string;
  errorType: "ImportError" | "ValidationError";
  severity: "error" | "warning";
  message: string;
  hint: string;
  line?: number;
}

/** A tool as Toolcrib gets to know it. */
export interface Spec extends JsonSchema {
  name: string;
  description: string;
  inputSchema: JsonSchema;
}

/** A tool that can be called. */
export interface Tool {
  spec: Spec;
  parse: Arguments["parse"];
  /** How many of its calls may run at once, where it says so. */
  concurrency: number | undefined;
  execute(args: unknown, context: unknown): unknown;
}

export interface Described {
  tools: Map<string, Tool>;
  problems: Problem[];
}

const OPTIONS = [
  "title",
  "icons",
  "_meta",
  "version",
  "tags",
  "aliases",
  "metadata",
  "annotations",
  "timeoutMs",
  "env",
  "permissions",
  "sandbox",
];
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

interface Definition extends Record<string, unknown> {
  description: string;
  args: object;
  execute(args: unknown, context: unknown): unknown;
}

/** All tools of the file, in the order of its exports; one that is wrong hides no other. */
export async function describe(exports: unknown, script: Script): Promise<Described> {
  const described: Described = { tools: new Map(), problems: [] };
  const reading = Object.entries(exportsOf(exports)).map(async ([name, value]) => {
    const toolName = idOf(value) ?? (name === "default" ? stemOf(script) : `${stemOf(script)}_${name}`);
    const line = lineOf(script, definedAt(name));
    try {
      return { toolName, tool: await read(value, toolName, line, script) };
    } catch (error) {
      return { toolName, problem: { toolName, ...problemOf(error), ...line, ...ownLine(error, script) } };
    }
  });
  for (const { toolName, tool, problem } of await Promise.all(reading)) {
    if (tool) described.tools.set(toolName, tool);
    if (problem) described.problems.push(problem);
  }
  return described;
}

/** The name that `Tool.define` was given. */
function idOf(value: unknown): string | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || !madeByTool(value)) return undefined;
  const id: unknown = (value as unknown as Record<symbol, unknown>)[Symbol.for("@toolcrib/plugin.id")];
  return typeof id === "string" ? id : undefined;
}

/** The exports by name. What CommonJS exports as a whole is the default. */
function exportsOf(exports: unknown): Record<string, unknown> {
  if (typeof exports === "function") return { default: exports };
  if (typeof exports !== "object" || exports === null) return {};
  if (looksLikeTool(exports) || madeByTool(exports)) return { default: exports };
  return exports as Record<string, unknown>;
}

function looksLikeTool(value: unknown): value is Definition {
  if (typeof value !== "object" || value === null) return false;
  const { description, args, execute } = value as Partial<Definition>;
  const object = typeof args === "object" && args !== null && !Array.isArray(args);
  return typeof description === "string" && object && typeof execute === "function";
}

/** The tool in an export, or nothing: most exports are none. */
async function read(value: unknown, name: string, line: { line?: number }, script: Script): Promise<Tool | undefined> {
  const init = typeof value === "function" && madeByTool(value);
  if (!init && !looksLikeTool(value)) {
    if (typeof value === "object" && value !== null && madeByTool(value)) throw incomplete(value);
    return undefined;
  }
  if (!NAME.test(name))
    throw new SchemaError(
      `the tool's name would be ${JSON.stringify(name)}`,
      "A name has 1 to 64 letters, digits, _ and -: rename the file or the export",
    );
  const definition = init ? await made(value as Init, script) : (value as Definition);
  if (definition.description.trim() === "")
    throw new SchemaError("the description is empty", "Say in one sentence what the tool does: agents choose by it");
  const { inputSchema, parse, checks } = await readArguments(definition.args);
  const spec: Spec = { name, description: definition.description, inputSchema, ...line };
  if (checks) spec["checksArguments"] = checks;
  const concurrency = definition["concurrency"] as number | undefined;
  if (concurrency !== undefined && !(Number.isInteger(concurrency) && concurrency >= 1))
    throw new SchemaError("`concurrency` is not a number of calls, 1 or more", "Write `concurrency: 1` for one call at a time");
  for (const option of OPTIONS) if (definition[option] !== undefined) spec[option] = definition[option];
  if (definition["outputSchema"] !== undefined) spec["outputSchema"] = await readOutputSchema(definition["outputSchema"]);
  if (init) spec["dynamic"] = true;
  try {
    JSON.stringify(spec);
  } catch (error) {
    throw new SchemaError(`the options can't be written as JSON: ${messageOf(error)}`, "Give plain data");
  }
  return { spec, parse, concurrency, execute: (args, context) => definition.execute(args, context) };
}

type Init = (context: InitContext) => unknown;

async function made(init: Init, script: Script): Promise<Definition> {
  const definition = await init({ directory: script.directory, workingDir: script.directory });
  if (looksLikeTool(definition)) return definition;
  throw incomplete(definition);
}

function incomplete(value: unknown): SchemaError {
  const given = (isObject(value) ? value : {}) as Partial<Definition>;
  const missing = [
    typeof given.description === "string" ? "" : "`description` (a string)",
    typeof given.args === "object" && given.args !== null ? "" : "`args` (an object; {} for none)",
    typeof given.execute === "function" ? "" : "`execute` (a function)",
  ].filter((part) => part !== "");
  return new SchemaError(`the tool has no ${missing.join(" and no ")}`, "Add what is missing");
}

function problemOf(error: unknown): Problem {
  const severity = "error";
  if (error instanceof SchemaError)
    return { errorType: "ValidationError", severity, message: error.message, hint: error.hint };
  return {
    errorType: "ImportError",
    severity,
    message: `the tool's async init failed: ${words(error)}`,
    hint: "It is called when the file is loaded: fix it, and save the file",
  };
}

function ownLine(error: unknown, script: Script): { line?: number } {
  if (error instanceof SchemaError) return {};
  const frame = framesOf(error, script).find(({ file }) => file === script.file);
  return frame ? { line: frame.line } : {};
}

/** Where an export is written. */
function definedAt(name: string): RegExp {
  if (name === "default")
    return /^[ \t]*export\s+default\b|^[ \t]*module\.exports\s*=|\bexports\.default\s*=|\bas\s+default\b/m;
  const word = name.replaceAll("$", "\\$");
  const declared = "(?:const|let|var|(?:async\\s+)?function\\*?|class)";
  return new RegExp(`^[ \\t]*(?:export\\s+)?${declared}\\s+${word}\\b|\\bexports\\.${word}\\s*=|\\bas\\s+${word}\\b`, "m");
}
