// Loads the texts of a script under the names of the files that they came from. THE LIST of ways to do it: one per
// runtime. CommonJS is our own on all of them.

import { guardRequire } from "./alone.js";
import { registerHooks } from "./node-module.js";
import { bun } from "../runtime.js";
import type { Script } from "../script.js";
import { throughBun } from "./bun.js";
import { CommonJs } from "./commonjs.js";
import { throughHooks } from "./hooks.js";
import { throughVm } from "./vm.js";

/** How a runtime is made to load texts. */
export interface Loader {
  /** As `import(specifier)` in that file. */
  importFrom(specifier: string, importer: string): Promise<unknown>;
  /** As `require(path)` of an ES module, where the runtime can. */
  requireModule(path: string, importer: string): unknown;
}

/** What the tool file exports. */
export async function load(script: Script): Promise<unknown> {
  guardRequire(script);
  const commonJs = new CommonJs(script);
  const through = bun ? throughBun : registerHooks ? throughHooks : throughVm;
  commonJs.loader = through(script, commonJs);
  return script.texts[script.file]!.format === "commonjs"
    ? commonJs.load(script.file)
    : commonJs.loader.importFrom(script.file, script.file);
}
