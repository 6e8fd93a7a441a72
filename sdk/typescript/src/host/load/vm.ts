// Node 20: modules of `node:vm`, which need the flag --experimental-vm-modules. Node's hooks of that time live in a
// thread of their own, and starting it takes longer than all the rest.

import { createRequire, isBuiltin } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import { besideModules, isBare, isSdk, isZod, pathOf, target, type Script } from "../script.js";
import { sdkUrl } from "../sdk.js";
import { codeOf } from "../source-map.js";
import { mayLoad, missing } from "./alone.js";
import { exportNames, isMissing, type CommonJs } from "./commonjs.js";
import type { Loader } from "./index.js";
import { findPackage } from "./packages.js";

/** Thrown on a Node that was started without the flag. */
export class UnfitRuntime extends Error {
  constructor() {
    super(`Node ${process.versions.node} loads tools only with the flag --experimental-vm-modules`);
  }
}

type Namespace = Record<string, unknown>;

export function throughVm(script: Script, commonJs: CommonJs): Loader {
  if (vm.SourceTextModule === undefined) throw new UnfitRuntime();
  const modules = new Map<string, vm.Module>();
  const evaluations = new Map<vm.Module, Promise<void>>();
  // Linking goes through the whole graph; two at once would meet half-linked modules.
  let linking: Promise<unknown> = Promise.resolve();

  const importFrom = async (specifier: string, importer: string): Promise<unknown> => {
    const path = target(script, importer, specifier);
    if (path === undefined || !Object.hasOwn(script.texts, path)) return importNative(script, path ?? specifier, importer);
    const module = moduleOf(path);
    const linked = linking.then(() => (module.status === "unlinked" ? module.link(link) : undefined));
    linking = linked.catch(() => {});
    await linked;
    let evaluation = evaluations.get(module);
    if (!evaluation) evaluations.set(module, (evaluation = module.evaluate()));
    await evaluation;
    return module.namespace;
  };

  const link = async (specifier: string, referrer: vm.Module): Promise<vm.Module> => {
    const importer = pathOf(referrer.identifier);
    const path = target(script, importer, specifier);
    if (path !== undefined && Object.hasOwn(script.texts, path)) return moduleOf(path);
    const namespace = (await importNative(script, path ?? specifier, importer)) as Namespace;
    return synthetic(specifier, Object.keys(namespace), () => namespace);
  };

  const moduleOf = (path: string): vm.Module => {
    let module = modules.get(path);
    if (!module) modules.set(path, (module = make(path)));
    return module;
  };

  const make = (path: string): vm.Module => {
    const { text, format } = script.texts[path]!;
    if (format === "json") return synthetic(path, ["default"], () => ({ default: JSON.parse(text) as unknown }));
    if (format === "commonjs") {
      const names = exportNames(text);
      return synthetic(path, ["default", ...names], () => {
        const all = commonJs.load(path);
        return { ...Object.fromEntries(names.map((name) => [name, (all as Namespace)[name]])), default: all };
      });
    }
    const url = pathToFileURL(path).href;
    const require = createRequire(path);
    return new vm.SourceTextModule(codeOf(text), {
      identifier: url,
      initializeImportMeta(meta) {
        Object.assign(meta, {
          dirname: dirname(path),
          filename: path,
          resolve: (asked: string) => {
            const known = target(script, path, asked);
            if (known !== undefined) return pathToFileURL(known).href;
            if (!isBare(asked)) return new URL(asked, url).href;
            return isBuiltin(asked) ? asked : pathToFileURL(require.resolve(asked)).href;
          },
          url,
        });
      },
      importModuleDynamically: ((asked: string) => importFrom(asked, path)) as never,
    });
  };

  return {
    importFrom,
    requireModule(path) {
      const error = new Error(`require() of ${path}: Node 20 can't require an ES module; use import, or Node 22`);
      throw Object.assign(error, { code: "ERR_REQUIRE_ESM" });
    },
  };
}

/** A module whose exports are values that are there, or are made when it is evaluated. */
function synthetic(name: string, names: string[], make: () => Namespace): vm.Module {
  const module: vm.SyntheticModule = new vm.SyntheticModule(
    names,
    () => {
      const values = make();
      for (const one of names) module.setExport(one, values[one]);
    },
    { identifier: name },
  );
  return module;
}

/** As `import(specifier)` in that file, by Node's own loader. */
async function importNative(script: Script, specifier: string, importer: string): Promise<unknown> {
  if (isSdk(specifier)) return import(sdkUrl);
  const beside = besideModules(script);
  try {
    return await importAt(script, specifier, importer);
  } catch (error) {
    if (!isBare(specifier) || !isMissing(error, specifier)) throw error;
    if (beside !== undefined) {
      try {
        return await importAt(script, specifier, beside);
      } catch (again) {
        if (!isMissing(again, specifier)) throw again;
      }
    }
    if (isZod(specifier)) return import(sdkUrl);
    throw error;
  }
}

async function importAt(script: Script, specifier: string, importer: string): Promise<unknown> {
  if (isBuiltin(specifier)) return import(specifier);
  if (script.alone) return importAllowed(script, specifier, importer);
  const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  // Before Node 20.12 only `require` can be asked from another place.
  if (loader === undefined) return import(pathToFileURL(createRequire(importer).resolve(specifier)).href);
  const run = new vm.Script("(specifier) => import(specifier)", {
    filename: importer,
    importModuleDynamically: loader,
  }).runInThisContext() as (specifier: string) => Promise<unknown>;
  return run(specifier);
}

/** The same for a script that is trusted by itself: the file is found here, so that it can be refused. */
async function importAllowed(script: Script, specifier: string, importer: string): Promise<unknown> {
  const url = isBare(specifier)
    ? findPackage(specifier, importer, ["node", "import"]).url
    : new URL(specifier, pathToFileURL(importer)).href;
  const path = pathOf(url);
  if (path === "" || path === importer || !mayLoad(script, path)) throw missing(specifier, importer);
  return import(url);
}
