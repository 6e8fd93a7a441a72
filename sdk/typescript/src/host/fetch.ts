// On Node, `fetch` knows no proxy. Where the environment names one, the first `fetch` makes it go there.

import { bun, deno } from "./runtime.js";
import { requireHere } from "./sdk.js";

const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

export function leadFetchThroughProxy(): void {
  if (bun || deno || process.env["NODE_USE_ENV_PROXY"] === "1" || !NAMES.some((name) => process.env[name])) return;
  const plain = globalThis.fetch;
  const slot = { configurable: true, enumerable: true, writable: true };
  const prepare: typeof fetch = (...given) => {
    Object.defineProperty(globalThis, "fetch", { ...slot, value: plain });
    const own = (requireHere("node:http") as { setGlobalProxyFromEnv?: () => void }).setGlobalProxyFromEnv;
    if (own) own();
    else requireHere("./proxy.cjs");
    return plain(...given);
  };
  let asked = false;
  // A tool may have kept this function: it prepares once, whoever calls it.
  const lazily: typeof fetch = (...given) => {
    if (asked) return plain(...given);
    asked = true;
    return prepare(...given);
  };
  Object.defineProperty(globalThis, "fetch", { ...slot, value: lazily });
}
