// The part of `node:module` that the types of Node 20 do not have yet.

import module from "node:module";

export interface ResolveContext {
  parentURL?: string;
  conditions?: string[];
  importAttributes?: Record<string, string>;
}

export interface Resolved {
  url: string;
  format?: string;
  shortCircuit?: boolean;
  importAttributes?: Record<string, string>;
}

export interface Loaded {
  source: string;
  format: string;
  shortCircuit: true;
}

export interface Hooks {
  resolve(
    specifier: string,
    context: ResolveContext,
    next: (specifier: string, context: ResolveContext) => Resolved,
  ): Resolved;
  load(url: string, context: object, next: (url: string, context: object) => Loaded): Loaded;
}

/** In Node since 22.15, and in Deno. */
export const registerHooks = (module as unknown as { registerHooks?: (hooks: Hooks) => void }).registerHooks;
