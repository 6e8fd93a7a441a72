// The SDK and its Zod, loaded only when a tool file or a description needs them.

import { createRequire } from "node:module";
import type { z } from "zod";

/** Where the SDK lies: beside the host. */
export const sdkUrl = new URL("./plugin.js", import.meta.url).href;

export const requireHere = createRequire(import.meta.url);

export function requireSdk(): unknown {
  return requireHere("./plugin.cjs");
}

interface Shared {
  made: WeakSet<object>;
  z: typeof z;
}

function shared(): Shared | undefined {
  return (globalThis as unknown as Record<symbol, Shared | undefined>)[Symbol.for("@toolcrib/plugin")];
}

/** Whether this went through `tool()`. */
export function madeByTool(value: object): boolean {
  return shared()?.made.has(value) ?? false;
}

/** Zod 4: the copy that is loaded, else the SDK's. */
export async function zod(): Promise<typeof z> {
  if (shared() === undefined) await import(sdkUrl);
  return shared()!.z;
}
