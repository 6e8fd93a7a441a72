// Stack traces, cut down to the frames of the user's own files.

import { dirname } from "node:path";
import vm from "node:vm";
import { deno } from "./runtime.js";
import { isObject, pathOf, type Script } from "./script.js";
import { codeOf, original, type Place } from "./source-map.js";

export interface Frame extends Place {
  name: string;
  file: string;
}

const FRAME = /^\s*at (?:async )?(?:(.*?) \()?((?:file:\/\/)?\/.*?):(\d+):(\d+)\)?$/;

/** The frames of an error that lie in the user's files, where their author put them. */
export function framesOf(error: unknown, script: Script): Frame[] {
  const stack = isObject(error) || error instanceof Error ? (error as Error).stack : undefined;
  if (typeof stack !== "string") return [];
  const frames: Frame[] = [];
  for (const line of stack.split("\n")) {
    const [, name = "", where = "", row, column] = FRAME.exec(line) ?? [];
    const file = pathOf(where);
    if (file === "" || !isOwn(file, script)) continue;
    const place = { line: Number(row), column: Number(column) };
    // Deno has read the map of a module itself.
    const mapped = deno && script.texts[file]?.format === "module" ? place : placeIn(script, file, place);
    frames.push({ name, file, ...mapped });
  }
  return frames;
}

function isOwn(file: string, script: Script): boolean {
  if (Object.hasOwn(script.texts, file)) return true;
  if (file.includes("/node_modules/")) return false;
  return file.startsWith(`${script.directory}/`) || file.startsWith(`${dirname(script.file)}/`);
}

function placeIn(script: Script, file: string, place: Place): Place {
  const text = Object.hasOwn(script.texts, file) ? script.texts[file] : undefined;
  return text ? original(text.text, place) : place;
}

/** As text: a line per frame. */
export function traceback(error: unknown, script: Script): string {
  return framesOf(error, script)
    .map(({ name, file, line, column }) => `at ${name === "" ? "" : `${name} `}(${file}:${line}:${column})`)
    .join("\n");
}

/** Where an error of loading lies: in the user's frames, or where the parser stood. */
export function placeOf(error: unknown, script: Script): (Place & { file: string }) | undefined {
  const [first] = framesOf(error, script);
  const { name, message } = (error ?? {}) as { name?: string; message?: string };
  return parserPlace(error, script) ?? first ?? (name === "SyntaxError" ? parsedAgain(message, script) : undefined);
}

/** Where the parser stood. Each runtime tells it in its own way. */
function parserPlace(error: unknown, script: Script): (Place & { file: string }) | undefined {
  const { stack = "", message = "", position, errors } = error as ParserError;
  if (position && typeof position.line === "number") {
    const file = pathOf(position.file ?? "") || script.file;
    return { file, ...placeIn(script, file, { line: position.line, column: position.column ?? 1 }) };
  }
  if (Array.isArray(errors) && errors.length > 0) return parserPlace(errors[0], script);
  for (const file of Object.keys(script.texts)) {
    // Node: the place, the line, and a mark below it, before the error's own words.
    const head = stack.split("\n");
    if (pathOf(head[0]!.replace(/:\d+$/, "")) === file) {
      const line = Number(/:(\d+)$/.exec(head[0]!)?.[1] ?? 1);
      const column = (head[2]?.indexOf("^") ?? 0) + 1;
      return { file, ...placeIn(script, file, { line, column: Math.max(column, 1) }) };
    }
    // Deno: in the words.
    const at = message.lastIndexOf(`${file}:`);
    const [, line, column] = at < 0 ? [] : (/^(\d+)(?::(\d+))?/.exec(message.slice(at + file.length + 1)) ?? []);
    if (line !== undefined) return { file, ...placeIn(script, file, { line: Number(line), column: Number(column ?? 1) }) };
  }
  return undefined;
}

/**
 * Node keeps to itself where a module does not parse, but not so for scripts: the text is parsed once more as one,
 * with what only modules have made blank.
 */
function parsedAgain(message: string | undefined, script: Script): (Place & { file: string }) | undefined {
  const blank = (words: string): string => words.replace(/[^\n]/g, " ");
  for (const [file, { text, format }] of Object.entries(script.texts)) {
    if (format !== "module") continue;
    const body = codeOf(text)
      .replace(/^[ \t]*import\b[^;()]*?["'][^"'\n]*["'](?:\s*with\s*\{[^}]*\})?/gm, blank)
      .replace(/^[ \t]*export\s+default\b/gm, (words) => `${blank(words.slice(1))}+`)
      .replace(/^[ \t]*export\s*(?:\*[^;\n]*|\{[^}]*\}(?:\s*from\s*["'][^"'\n]*["'])?)/gm, blank)
      .replace(/^([ \t]*)export\b/gm, "$1      ")
      .replaceAll("import.meta", "import_meta");
    try {
      new vm.Script(`async () => {${body}\n}`, { filename: file, columnOffset: -13 });
    } catch (error) {
      if ((error as Error).message === message) return parserPlace(error, script);
    }
  }
  return undefined;
}

interface ParserError {
  stack?: string;
  message?: string;
  position?: { file?: string; line?: number; column?: number } | null;
  errors?: unknown[];
}
