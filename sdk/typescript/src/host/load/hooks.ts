// Node since 22.15, and Deno: hooks in the same thread give the texts to the runtime's own loader.

import { createRequire, isBuiltin } from "node:module";
import { pathToFileURL } from "node:url";
import { deno } from "../runtime.js";
import { besideModules, isBare, isSdk, isZod, pathOf, target, type Script } from "../script.js";
import { sdkUrl } from "../sdk.js";
import { codeOf, withMap } from "../source-map.js";
import { allowed, missing } from "./alone.js";
import { exportNames, firstFound, type CommonJs } from "./commonjs.js";
import type { Loader } from "./index.js";
import { registerHooks, type Loaded, type ResolveContext, type Resolved } from "./node-module.js";
import { findPackage, isCommonJs } from "./packages.js";

/** CommonJS and JSON are imported through a small module that stands for them. */
const STANDS_FOR = "toolcrib:";
const LOADED = Symbol.for("toolcrib.commonjs");

type Next = (specifier: string, context: ResolveContext) => Resolved;

export function throughHooks(script: Script, commonJs: CommonJs): Loader {
  (globalThis as unknown as Record<symbol, unknown>)[LOADED] = (path: string) =>
    Object.hasOwn(script.texts, path) ? commonJs.load(path) : createRequire(path)(path);

  const found = (url: string, format = "module"): Resolved => ({ url, format, shortCircuit: true });

  const text = (path: string, context: ResolveContext): Resolved => {
    const url = pathToFileURL(path).href;
    const { format } = script.texts[path]!;
    const asked = context.importAttributes?.["type"] === "json";
    if (format === "module" || (format === "json" && asked)) return found(url, format);
    return found(STANDS_FOR + encodeURIComponent(path));
  };

  const bare = (specifier: string, context: ResolveContext, next: Next): Resolved => {
    const beside = besideModules(script);
    const checked = (one: Resolved, place: string): Resolved => allowed(script, one, specifier, place);
    const from = (place: string) => (): Resolved =>
      deno
        ? inDeno(checked(findPackage(specifier, place, context.conditions ?? []), place), context)
        : checked(next(specifier, { ...context, parentURL: pathToFileURL(place).href }), place);
    return firstFound(specifier, from(pathOf(context.parentURL ?? "")), [
      ...(beside === undefined ? [] : [from(beside)]),
      ...(isZod(specifier) ? [() => found(sdkUrl)] : []),
    ]);
  };

  registerHooks!({
    resolve(specifier, context, next) {
      if (isSdk(specifier)) return found(sdkUrl);
      const importer = pathOf(context.parentURL ?? "");
      const path = target(script, importer, specifier);
      if (path !== undefined && Object.hasOwn(script.texts, path)) return text(path, context);
      const ours = Object.hasOwn(script.texts, importer);
      if (path === undefined && ours && isBare(specifier) && !isBuiltin(specifier)) return bare(specifier, context, next);
      // To Deno it is a place in the same file, which then waits for itself.
      if (deno && ours && specifier.startsWith("#")) throw missing(specifier, importer, "Deno reads no `imports` of a package.json");
      const resolved = next(path === undefined ? specifier : pathToFileURL(path).href, context);
      return allowed(script, resolved, specifier, importer);
    },
    load(url, context, next) {
      if (url.startsWith(STANDS_FOR)) return standIn(script, decodeURIComponent(url.slice(STANDS_FOR.length)));
      const path = pathOf(url);
      const given = Object.hasOwn(script.texts, path) ? script.texts[path] : undefined;
      if (!given) return next(url, context);
      // Deno reads maps, and takes the one of the file on the disk where there is none.
      const source = deno && given.format === "module" ? withMap(given.text, url) : codeOf(given.text);
      return { source, format: given.format, shortCircuit: true };
    },
  });

  return {
    importFrom: (specifier, importer) => {
      const path = target(script, importer, specifier);
      if (path !== undefined) return import(pathToFileURL(path).href);
      return importAt(specifier, importer);
    },
    requireModule: (path, importer) => createRequire(importer)(path),
  };

  /** A specifier that is no text, as that file would import it. */
  function importAt(specifier: string, importer: string): Promise<unknown> {
    if (isSdk(specifier)) return import(sdkUrl);
    if (!isBare(specifier) || isBuiltin(specifier)) return import(new URL(specifier, pathToFileURL(importer)).href);
    const context = { parentURL: pathToFileURL(importer).href, conditions: ["node", "import"] };
    return import(bare(specifier, context, (asked) => found(createRequire(importer).resolve(asked))).url);
  }
}

/** With hooks, Deno takes CommonJS packages for ES modules. */
function inDeno(found: Resolved, context: ResolveContext): Resolved {
  const path = pathOf(found.url);
  const imported = !context.conditions?.includes("require");
  if (!imported || !isCommonJs(path)) return found;
  return { url: STANDS_FOR + encodeURIComponent(path), format: "module", shortCircuit: true };
}

function standIn(script: Script, path: string): Loaded {
  const given = Object.hasOwn(script.texts, path) ? script.texts[path] : undefined;
  const shape = { format: "module", shortCircuit: true } as const;
  if (given?.format === "json") return { ...shape, source: `export default JSON.parse(${JSON.stringify(given.text)})` };
  const names = given ? exportNames(given.text) : Object.keys(Object(createRequire(path)(path))).filter(isName);
  const source = [
    `const all = globalThis[Symbol.for("toolcrib.commonjs")](${JSON.stringify(path)});`,
    "export default all;",
    ...names.map((name, at) => `const _${at} = all.${name}; export { _${at} as ${name} };`),
  ];
  return { ...shape, source: source.join("\n") };
}

function isName(name: string): boolean {
  return /^[A-Za-z_$][\w$]*$/.test(name) && name !== "default" && name !== "__esModule";
}
