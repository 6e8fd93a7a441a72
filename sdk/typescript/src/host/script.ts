// The tool file as Toolcrib hands it over: texts that were scanned, and how they refer to each other.

import { existsSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

export type Format = "module" | "commonjs" | "json";

export interface Text {
  /** JavaScript or JSON; it may end with an inline source map. */
  text: string;
  format: Format;
}

export interface Script {
  /** The tool file. */
  file: string;
  /** The project. */
  directory: string;
  /** What the tools are called after, where it is not the file's name. */
  stem?: string;
  texts: Record<string, Text>;
  /** What each relative specifier of a text means. */
  resolved?: Record<string, Record<string, string>>;
  /** A `node_modules` folder that is asked after those above the file. */
  modules?: string;
  /** Whether it is trusted by itself: of what lies around it nothing is loaded. */
  alone?: boolean;
  /** The folder that is its own, where it is trusted by itself and not a single file. */
  own?: string;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The script of an `initialize`, or what is wrong with it. */
export function readScript(given: unknown): Script | string {
  if (!isObject(given)) return "params.script is missing: a host loads what Toolcrib sends it";
  const { file, directory, texts } = given;
  if (typeof file !== "string" || typeof directory !== "string") return "params.script needs `file` and `directory`";
  if (!isObject(texts) || !isObject(texts[file])) return "params.script.texts has no text of the file";
  return withTools(given as unknown as Script);
}

/** Where other projects keep what defines their tools: `import { Tool } from "../tools/index.js"`. */
const TOOLS = /\bfrom\s*["'](\.{1,2}\/(?:[^"'\n]*\/)?tools\/index\.[jt]s)["']/g;

/** The same script, in which such a file that is not there is the SDK. */
function withTools(script: Script): Script {
  const texts = { ...script.texts };
  const resolved = { ...script.resolved };
  for (const [importer, { text, format }] of Object.entries(script.texts)) {
    if (format !== "module") continue;
    for (const [, specifier] of text.matchAll(TOOLS)) {
      const path = join(dirname(importer), specifier!);
      if (target(script, importer, specifier!) !== undefined || existsSync(path)) continue;
      texts[path] = { text: 'export * from "@toolcrib/plugin";', format: "module" };
      resolved[importer] = { ...resolved[importer], [specifier!]: path };
    }
  }
  return { ...script, texts, resolved };
}

/** A file's path; empty for what is no file. */
export function pathOf(urlOrPath: string): string {
  if (urlOrPath.startsWith("/")) return urlOrPath;
  if (!urlOrPath.startsWith("file:")) return "";
  try {
    return fileURLToPath(urlOrPath);
  } catch {
    return "";
  }
}

/** What the tools of the file are called after. */
export function stemOf(script: Script): string {
  return script.stem ?? basename(script.file, extname(script.file));
}

/** The path that a specifier of this text stands for, where Toolcrib has said so. */
export function target(script: Script, importer: string, specifier: string): string | undefined {
  const told = script.resolved?.[importer]?.[specifier];
  if (told !== undefined) return told;
  const path = pathOf(specifier);
  return path !== "" && Object.hasOwn(script.texts, path) ? path : undefined;
}

/** A place whose `node_modules` is `script.modules`. */
export function besideModules(script: Script): string | undefined {
  return script.modules === undefined ? undefined : `${dirname(script.modules)}/file.js`;
}

const SDK = /^@(?:toolcrib|opencode-ai|atomic)\/plugin(?:\/tool)?$/;
const ZOD = /^zod(?:\/v4)?$/;

export function isSdk(specifier: string): boolean {
  return SDK.test(specifier);
}

/** What the SDK stands in for where the file's own packages have none. */
export function isZod(specifier: string): boolean {
  return ZOD.test(specifier);
}

/** True for `left-pad` and `@a/b`, false for `./a`, `/a`, `node:fs` and URLs. */
export function isBare(specifier: string): boolean {
  return !/^(?:\.{0,2}\/|\.{1,2}$|#|[a-z][a-z0-9+.-]*:)/i.test(specifier);
}
