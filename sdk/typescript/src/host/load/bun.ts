// Bun: a plugin gives it the texts.

import { existsSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, resolve } from "node:path";
import { bun, type BunBuild } from "../runtime.js";
import { isBare, isSdk, isZod, pathOf, target, type Script } from "../script.js";
import { sdkUrl } from "../sdk.js";
import { codeOf } from "../source-map.js";
import { loadable, mayLoad, missing } from "./alone.js";
import type { CommonJs } from "./commonjs.js";
import type { Loader } from "./index.js";

const SDK_NAMES = ["@toolcrib/plugin", "@opencode-ai/plugin", "@atomic/plugin"];

export function throughBun(script: Script, commonJs: CommonJs): Loader {
  const paths = Object.keys(script.texts).map(literally);
  bun!.plugin({
    name: "toolcrib",
    setup(build) {
      for (const name of SDK_NAMES) for (const end of ["", "/tool"]) alias(build, name + end, sdkUrl);
      for (const [specifier, to] of elsewhere(script))
        if (to === undefined) refuse(build, specifier, script.file);
        else alias(build, specifier, to);
      build.onResolve({ filter: /^(?:\.|\/|file:)/ }, ({ path, importer }) => {
        const to = target(script, importer, path);
        if (to === undefined && script.alone && !mayLoad(script, fileAt(path, importer))) throw missing(path, importer);
        return to === undefined ? undefined : { path: to };
      });
      build.onLoad({ filter: new RegExp(`^(?:${paths.join("|")})$`) }, ({ path }) => {
        const { text, format } = script.texts[path]!;
        if (format === "module") return { contents: withEnds(codeOf(text), script.resolved?.[path] ?? {}), loader: "js" };
        const value: unknown = format === "json" ? JSON.parse(text) : commonJs.load(path);
        const names = typeof value === "object" && value !== null ? value : {};
        return { exports: { ...names, default: value }, loader: "object" };
      });
      if (!script.alone) return;
      // However it was found: by a name that was put together, or by what a package.json above maps.
      const open = [...paths.map((path) => `${path}$`), ...loadable(script).map(literally)];
      build.onLoad({ filter: new RegExp(`^(?!${open.join("|")})`) }, ({ path }) => {
        throw missing(path, script.file);
      });
    },
  });
  return {
    importFrom(specifier, importer) {
      const path = target(script, importer, specifier);
      if (path !== undefined) return import(path);
      if (isSdk(specifier)) return import(sdkUrl);
      if (isBuiltin(specifier)) return import(specifier);
      const found = bun!.resolveSync(specifier, dirname(importer));
      if (!mayLoad(script, found)) throw missing(specifier, importer);
      return import(found);
    },
    requireModule: (path, importer) => createRequire(importer)(path),
  };
}

/** Bun asks a plugin only about specifiers that end like a file: others are written out. */
function withEnds(code: string, resolved: Record<string, string>): string {
  const pattern = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])(\.[^"'\n]*)\2/g;
  return code.replace(pattern, (whole, before: string, quote: string, specifier: string) => {
    const to = /\.\w+$/.test(specifier) ? undefined : resolved[specifier];
    return to === undefined ? whole : `${before}${quote}${to}${quote}`;
  });
}

/** A pattern that matches this text alone. */
function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

function alias(build: BunBuild, specifier: string, to: string): void {
  build.module(specifier, async () => ({
    exports: (await import(to)) as Record<string, unknown>,
    loader: "object",
  }));
}

/** The file that a path in this file names, written out; what is not there by that very name is nowhere. */
function fileAt(path: string, importer: string): string {
  const file = pathOf(path) || resolve(dirname(importer), path);
  return existsSync(file) ? file : "/";
}

/** Whoever imports it is told that it is not there. */
function refuse(build: BunBuild, specifier: string, importer: string): void {
  build.module(specifier, () => {
    throw missing(specifier, importer);
  });
}

/** The packages that are not above the file, and those that may not be loaded, without a place. Bun asks no plugin about
 * packages, so they are told beforehand. */
function elsewhere(script: Script): Map<string, string | undefined> {
  const found = new Map<string, string | undefined>();
  const scanner = new bun!.Transpiler({ loader: "js" });
  for (const [path, { text, format }] of Object.entries(script.texts)) {
    if (format !== "module") continue;
    for (const { path: specifier } of scanImports(scanner, text)) {
      if (!isBare(specifier) || isSdk(specifier) || isBuiltin(specifier)) continue;
      const above = resolves(specifier, dirname(path));
      if (above !== undefined && mayLoad(script, above)) continue;
      const to = script.modules === undefined ? undefined : resolves(specifier, dirname(script.modules));
      if (to !== undefined) found.set(specifier, to);
      else if (isZod(specifier)) found.set(specifier, sdkUrl);
      else if (above !== undefined) found.set(specifier, undefined);
    }
  }
  return found;
}

function scanImports(scanner: { scanImports(text: string): { path: string }[] }, text: string): { path: string }[] {
  try {
    return scanner.scanImports(text);
  } catch {
    return []; // it does not parse: loading it says so, with a line
  }
}

function resolves(specifier: string, folder: string): string | undefined {
  try {
    return bun!.resolveSync(specifier, folder);
  } catch {
    return undefined;
  }
}
