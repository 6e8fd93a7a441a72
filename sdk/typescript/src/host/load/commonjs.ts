// CommonJS for texts, the same on every runtime: `require` knows the texts first, then asks the runtime.

import { createRequire } from "node:module";
import { dirname } from "node:path";
import vm from "node:vm";
import { runtimeName } from "../runtime.js";
import { besideModules, isSdk, isZod, target, type Script } from "../script.js";
import { requireSdk } from "../sdk.js";
import { codeOf } from "../source-map.js";
import type { Loader } from "./index.js";

interface Module {
  exports: unknown;
  id: string;
  filename: string;
  path: string;
  loaded: boolean;
  children: Module[];
  paths: string[];
  require: NodeJS.Require;
}

const HEAD = "(function (exports, require, module, __filename, __dirname) { ";

export class CommonJs {
  loader!: Loader;
  private readonly modules = new Map<string, Module>();

  constructor(readonly script: Script) {}

  /** What the file exports; it runs once. */
  load(path: string): unknown {
    const known = this.modules.get(path);
    if (known) return known.exports;
    const require = this.requireFor(path);
    const folder = dirname(path);
    const module: Module = {
      exports: {},
      id: path,
      filename: path,
      path: folder,
      loaded: false,
      children: [],
      paths: [],
      require,
    };
    this.modules.set(path, module);
    try {
      this.compile(path).call(module.exports, module.exports, require, module, path, folder);
    } catch (error) {
      this.modules.delete(path);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  }

  private compile(path: string): (...given: unknown[]) => void {
    const text = codeOf(this.script.texts[path]!.text).replace(/^#!.*/, "");
    const importHere = (specifier: string): Promise<unknown> => this.loader.importFrom(specifier, path);
    // Node takes a function only with the flag for vm modules; its own loader has hooks where there is no flag.
    const useFunction = runtimeName !== "Node" || vm.SourceTextModule !== undefined;
    const compiled = new vm.Script(`${HEAD}${text}\n})`, {
      filename: path,
      columnOffset: -HEAD.length,
      importModuleDynamically: useFunction
        ? (importHere as never)
        : vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    return compiled.runInThisContext() as (...given: unknown[]) => void;
  }

  private requireFor(importer: string): NodeJS.Require {
    const native = createRequire(importer);
    const require = (specifier: string): unknown => {
      const path = target(this.script, importer, specifier);
      const text = path === undefined ? undefined : this.script.texts[path];
      if (text?.format === "commonjs") return this.load(path!);
      if (text?.format === "json") return JSON.parse(text.text);
      if (text) return this.loader.requireModule(path!, importer);
      if (isSdk(specifier)) return requireSdk();
      return this.requirePackage(path ?? specifier, native);
    };
    return Object.assign(require, {
      resolve: Object.assign(
        (specifier: string, options?: object): string =>
          target(this.script, importer, specifier) ?? native.resolve(specifier, options),
        { paths: native.resolve.paths },
      ),
      cache: native.cache,
      extensions: native.extensions,
      main: native.main,
    }) as NodeJS.Require;
  }

  private requirePackage(specifier: string, native: NodeJS.Require): unknown {
    const beside = besideModules(this.script);
    const others = [
      ...(beside === undefined ? [] : [(): unknown => createRequire(beside)(specifier)]),
      ...(isZod(specifier) ? [requireSdk] : []),
    ];
    return firstFound(specifier, () => native(specifier), others);
  }
}

/** What the first of these gives that finds the module. */
export function firstFound<T>(specifier: string, first: () => T, others: (() => T)[]): T {
  try {
    return first();
  } catch (error) {
    if (!isMissing(error, specifier)) throw error;
    for (const other of others) {
      try {
        return other();
      } catch (again) {
        if (!isMissing(again, specifier)) throw again;
      }
    }
    throw error;
  }
}

/** Whether this error says that there is no such module, and not that one of its own is missing. */
export function isMissing(error: unknown, specifier: string): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  const missing =
    code === "MODULE_NOT_FOUND" ||
    code === "ERR_MODULE_NOT_FOUND" ||
    /^Cannot find (?:module|package)|^Module not found/.test(message ?? "");
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  return missing && (message ?? "").includes(name);
}

/** The names that a CommonJS text exports, as far as its words tell. */
export function exportNames(text: string): string[] {
  const names = new Set<string>();
  for (const [, name] of text.matchAll(/\bexports\.([A-Za-z_$][\w$]*)\s*=[^=]/g)) names.add(name!);
  for (const [, name] of text.matchAll(/\bdefineProperty\(\s*(?:module\.)?exports\s*,\s*["']([A-Za-z_$][\w$]*)["']/g))
    names.add(name!);
  for (const [, body] of text.matchAll(/\bmodule\.exports\s*=\s*\{([^{}]*)\}/g))
    for (const [, name] of body!.matchAll(/(?:^|,)\s*(?:async\s+)?([A-Za-z_$][\w$]*)\s*(?=[,:(]|$)/g)) names.add(name!);
  names.delete("default");
  names.delete("__esModule");
  return [...names];
}
