// A tool file that is trusted by itself. What lies around it is not, so none of that is loaded: only its own texts, its own
// folder, the packages that were installed for it, and the host.

import fs from "node:fs";
import module, { isBuiltin } from "node:module";
import { dirname, isAbsolute, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Script } from "../script.js";
import { sdkUrl } from "../sdk.js";
import { registerHooks, type Resolved } from "./node-module.js";
import { pathOf } from "../script.js";

/** Whether this file may be loaded. */
export function mayLoad(script: Script, path: string): boolean {
  if (!script.alone || Object.hasOwn(script.texts, path)) return true;
  const real = realOf(path);
  if (!loadable(script).some((folder) => real.startsWith(folder))) return false;
  // Without hooks nobody is asked what a package in there imports, and that may lie around the folder.
  const own = script.own !== undefined && real.startsWith(realOf(script.own) + sep);
  return !own || registerHooks !== undefined || !real.includes(`${sep}node_modules${sep}`);
}

/** The folders, with a slash at the end, whose files may be loaded beside its texts. */
export function loadable(script: Script): string[] {
  const environment = script.modules === undefined ? undefined : dirname(script.modules);
  const folders = [dirname(fileURLToPath(sdkUrl)), environment, script.own];
  return folders.filter((folder) => folder !== undefined).map((folder) => realOf(folder) + sep);
}

/** The same for what a loader found; throws as if it were not there. */
export function allowed(script: Script, found: Resolved, specifier: string, importer: string): Resolved {
  const path = pathOf(found.url);
  if (path !== "" && !mayLoad(script, path)) throw missing(specifier, importer);
  return found;
}

const ALONE = "this tool is trusted by itself, so nothing around it is loaded";

/** As Node says that there is no such module. */
export function missing(specifier: string, importer: string, why = ALONE): Error {
  const error = new Error(`Cannot find package '${specifier}' imported from ${importer}: ${why}`);
  return Object.assign(error, { code: "ERR_MODULE_NOT_FOUND" });
}

interface Resolver {
  _resolveFilename(request: string, parent?: { filename?: string }, ...rest: unknown[]): string;
}

/** Lets no `require`, of a package's own neither, find what may not be loaded. */
export function guardRequire(script: Script): void {
  const resolver = module as unknown as Resolver;
  const original = resolver._resolveFilename;
  if (!script.alone || typeof original !== "function") return;
  resolver._resolveFilename = function (request, parent, ...rest) {
    const found = original.call(this, request, parent, ...rest);
    const refused = !isBuiltin(found) && isAbsolute(found) && !mayLoad(script, found);
    if (refused) throw Object.assign(missing(request, parent?.filename ?? script.file), { code: "MODULE_NOT_FOUND" });
    return found;
  };
}

function realOf(path: string): string {
  try {
    return fs.realpathSync(path);
  } catch {
    return path;
  }
}
