// Loaded at the first `fetch` of a Node that can't go through a proxy by itself, where the environment names one.

// Taken alone they keep the bundle small; the package has no types for them.
// @ts-expect-error no types
import connect from "undici/lib/api/api-connect.js";
// @ts-expect-error no types
import Dispatcher from "undici/lib/dispatcher/dispatcher.js";
// @ts-expect-error no types
import EnvHttpProxyAgent from "undici/lib/dispatcher/env-http-proxy-agent.js";

// The package's entry adds this to it, with much that is not needed here.
Dispatcher.prototype.connect = connect;

// Node's own fetch asks this symbol for the way out.
const slot = Symbol.for("undici.globalDispatcher.1");
Object.defineProperty(globalThis, slot, { value: new EnvHttpProxyAgent(), writable: true, configurable: false });
