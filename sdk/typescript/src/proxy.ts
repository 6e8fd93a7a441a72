// Loaded at the first `fetch` of a Node that can't go through a proxy by itself, where the environment names one.

// @ts-expect-error the package has no types for this file; taken alone it keeps the bundle small
import EnvHttpProxyAgent from "undici/lib/dispatcher/env-http-proxy-agent.js";

// Node's own fetch asks this symbol for the way out.
const slot = Symbol.for("undici.globalDispatcher.1");
Object.defineProperty(globalThis, slot, { value: new EnvHttpProxyAgent(), writable: true, configurable: true });
