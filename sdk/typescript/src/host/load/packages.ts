// Finds npm packages above a file, for Deno: with hooks it does not look for them itself.

import fs from "node:fs";
import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { isObject } from "../script.js";
import type { Resolved } from "./node-module.js";

/** The file of a package, as an import in this place means it. */
export function findPackage(specifier: string, importer: string, conditions: string[]): Resolved {
  const parts = specifier.split("/");
  const name = parts.splice(0, specifier.startsWith("@") ? 2 : 1).join("/");
  const inside = parts.length === 0 ? "." : `./${parts.join("/")}`;
  for (let folder = dirname(importer); ; folder = dirname(folder)) {
    const place = join(folder, "node_modules", name);
    if (fs.existsSync(place)) {
      const file = entry(place, inside, new Set([...conditions, "default"]));
      if (file !== undefined) return { url: pathToFileURL(fs.realpathSync(file)).href, shortCircuit: true };
    }
    if (folder === dirname(folder)) break;
  }
  const error = new Error(`Cannot find package '${name}' imported from ${importer}`);
  throw Object.assign(error, { code: "ERR_MODULE_NOT_FOUND" });
}

function entry(place: string, inside: string, conditions: Set<string>): string | undefined {
  const spec = readSpec(place);
  if (spec["exports"] !== undefined && spec["exports"] !== null) {
    const to = exported(spec["exports"], inside, conditions);
    return to === undefined ? undefined : join(place, to);
  }
  if (inside !== ".") return file(join(place, inside));
  return file(join(place, typeof spec["main"] === "string" ? spec["main"] : "index.js")) ?? file(join(place, "index"));
}

function readSpec(place: string): Record<string, unknown> {
  try {
    const spec: unknown = JSON.parse(fs.readFileSync(join(place, "package.json"), "utf8"));
    return isObject(spec) ? spec : {};
  } catch {
    return {};
  }
}

/** The path, with what may be left out of it. */
function file(path: string): string | undefined {
  const candidates = [path, ...[".js", ".mjs", ".cjs", ".json"].map((end) => path + end), join(path, "index.js")];
  return candidates.find((candidate) => fs.statSync(candidate, { throwIfNoEntry: false })?.isFile());
}

/** What `exports` of a package.json says of this way in. */
function exported(exports: unknown, inside: string, conditions: Set<string>): string | undefined {
  const ways = isObject(exports) && Object.keys(exports).some((key) => key.startsWith("."));
  if (!ways) return inside === "." ? choose(exports, conditions, "") : undefined;
  const table = exports as Record<string, unknown>;
  if (Object.hasOwn(table, inside)) return choose(table[inside], conditions, "");
  const stars = Object.keys(table).filter((key) => key.includes("*"));
  stars.sort((a, b) => b.indexOf("*") - a.indexOf("*"));
  for (const key of stars) {
    const [head, tail] = key.split("*") as [string, string];
    if (inside.startsWith(head) && inside.endsWith(tail) && inside.length > head.length + tail.length)
      return choose(table[key], conditions, inside.slice(head.length, inside.length - tail.length));
  }
  return undefined;
}

/** The first target whose conditions hold. */
function choose(to: unknown, conditions: Set<string>, star: string): string | undefined {
  if (typeof to === "string") return to.replaceAll("*", star);
  if (Array.isArray(to)) {
    for (const one of to) {
      const chosen = choose(one, conditions, star);
      if (chosen !== undefined) return chosen;
    }
  }
  if (!isObject(to)) return undefined;
  for (const [condition, one] of Object.entries(to)) {
    if (!conditions.has(condition)) continue;
    const chosen = choose(one, conditions, star);
    if (chosen !== undefined) return chosen;
  }
  return undefined;
}

/** Whether a file of a package is CommonJS. */
export function isCommonJs(path: string): boolean {
  const end = extname(path);
  if (end === ".cjs") return true;
  if (end !== ".js") return false;
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
    if (fs.existsSync(join(folder, "package.json"))) return readSpec(folder)["type"] !== "module";
  return false;
}
