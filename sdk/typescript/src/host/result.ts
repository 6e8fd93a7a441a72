// What a tool returned, as the JSON of an answer.

import fs from "node:fs";
import { isObject } from "./script.js";
import { tellPath } from "./failure.js";

/** The JSON of a result. Half a character, which no reader takes, becomes the sign for one that is lost. */
export function resultJson(result: unknown): string {
  return jsonOf(result).replace(HALVES, "$1\\ufffd");
}

/** Escapes that are no text of their own: JSON writes only halves of characters so. */
const HALVES = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

function jsonOf(result: unknown): string {
  if (typeof result === "string") return JSON.stringify(result);
  if (result === undefined) return '""';
  if (result instanceof Error) throw result;
  if (typeof result === "bigint") return JSON.stringify(String(result));
  if (result instanceof Date || result instanceof URL) return JSON.stringify(text(result));
  if (result instanceof Uint8Array) return write(fileResult(result));
  if (isObject(result) && typeof result["output"] === "string" && Array.isArray(result["attachments"]))
    return write({ ...result, attachments: result["attachments"].map(attachment) });
  return write(result);
}

function text(value: Date | URL): string {
  if (value instanceof URL) return value.href;
  return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
}

/** Bytes are a file that goes with the result. */
function fileResult(bytes: Uint8Array): object {
  const mimeType = sniff(bytes);
  const type = mimeType.startsWith("image/") ? "image" : "file";
  return { output: `${bytes.length} bytes (${mimeType})`, attachments: [{ type, mimeType, data: base64(bytes) }] };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

const BEGINNINGS: [string, string][] = [
  ["89504e470d0a1a0a", "image/png"],
  ["ffd8ff", "image/jpeg"],
  ["47494638", "image/gif"],
  ["25504446", "application/pdf"],
  ["504b0304", "application/zip"],
];

function sniff(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, 8)).toString("hex");
  return BEGINNINGS.find(([beginning]) => start.startsWith(beginning))?.[1] ?? "application/octet-stream";
}

/** Toolcrib's form of an attachment; OpenCode's has a URL in it. */
function attachment(given: unknown): unknown {
  if (!isObject(given)) return given;
  const { data, url } = given;
  if (data instanceof Uint8Array) return { ...given, data: base64(data) };
  if (typeof url !== "string" || typeof data === "string" || given["text"] !== undefined) return given;
  const name = typeof given["filename"] === "string" ? { name: given["filename"] } : {};
  const mime = typeof given["mime"] === "string" ? given["mime"] : undefined;
  const inline = /^data:([^;,]*)((?:;[^;,]*)*),/.exec(url);
  if (inline) {
    const body = url.slice(inline[0].length);
    const encoded = inline[2]!.endsWith(";base64") ? body : Buffer.from(decodeURIComponent(body)).toString("base64");
    return { ...kind(mime ?? (inline[1] || "text/plain")), data: encoded, ...name };
  }
  if (url.startsWith("file:"))
    return { ...kind(mime ?? "application/octet-stream"), data: fs.readFileSync(new URL(url)).toString("base64"), ...name };
  return { type: "text", mimeType: "text/uri-list", text: url, ...name };
}

function kind(mimeType: string): { type: string; mimeType: string } {
  return { type: mimeType.startsWith("image/") ? "image" : "file", mimeType };
}

/** JSON of what JavaScript has and JSON has not, too. */
function write(value: unknown): string {
  try {
    return JSON.stringify(value, plain) ?? '""';
  } catch (error) {
    const path = circle(value, [], []);
    if (!path) throw error;
    throw new Error(`the result refers to itself at \`${tellPath(path)}\`: return data without circles`);
  }
}

function plain(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value !== "object" || value === null) return value;
  // A Buffer has turned itself into something else by now.
  const before = (this as Record<string, unknown>)[key];
  if (before instanceof Uint8Array) return base64(before);
  if (value instanceof Map) {
    const words = [...value.keys()].every((one) => typeof one === "string" || typeof one === "number");
    return words ? Object.fromEntries(value) : [...value];
  }
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof RegExp) return String(value);
  return value;
}

/** The way to the first value that holds itself. */
function circle(value: unknown, path: PropertyKey[], above: unknown[]): PropertyKey[] | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (above.includes(value)) return path;
  if (above.length > 200) return undefined;
  const entries: [PropertyKey, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  for (const [key, one] of entries) {
    const found = circle(one, [...path, key], [...above, value]);
    if (found) return found;
  }
  return undefined;
}
