// Which runtime this is, and what its globals are called.

interface Ffi {
  symbols: { dup2(from: number, to: number): number };
}

/** The part of Deno that the host uses. */
interface DenoGlobal {
  dlopen(path: string, symbols: object): Ffi;
  exit(code?: number): never;
}

/** The part of Bun that the host uses. */
interface BunGlobal {
  plugin(plugin: { name: string; setup(build: BunBuild): void }): void;
  resolveSync(specifier: string, from: string): string;
  Transpiler: new (options: { loader: string }) => { scanImports(text: string): { path: string; kind: string }[] };
}

type BunModule =
  | { contents: string; loader: "js" }
  | { exports: Record<string, unknown>; loader: "object" };

export interface BunBuild {
  module(specifier: string, make: () => BunModule | Promise<BunModule>): void;
  onResolve(
    options: { filter: RegExp },
    resolve: (asked: { path: string; importer: string }) => { path: string } | undefined,
  ): void;
  onLoad(options: { filter: RegExp }, load: (asked: { path: string }) => BunModule | undefined): void;
}

const globals = globalThis as { Bun?: BunGlobal; Deno?: DenoGlobal };

export const bun: BunGlobal | undefined = globals.Bun;
export const deno: DenoGlobal | undefined = globals.Deno;

/** As people call it. */
export const runtimeName: "Bun" | "Deno" | "Node" = bun ? "Bun" : deno ? "Deno" : "Node";

/** Ends the process; tools get another `process.exit`. */
export const exit: (code: number) => never = deno ? deno.exit.bind(deno) : process.exit.bind(process);
