// What a tool file imports: `tool`, the schema builder, and the types. Nothing of the host is in here.

import { z } from "zod";
import type { Attachment, InitContext, ToolContext, ToolDefinition } from "./types.js";

export { z };
export type * from "./types.js";

/**
 * Marks something as a tool and gives it back as it is. It takes the tool itself, or an async function that makes it
 * when the file is loaded.
 */
export function tool<Args extends z.ZodRawShape>(definition: ToolDefinition<Args>): ToolDefinition<Args>;
export function tool<Args extends z.ZodRawShape>(
  init: (context: InitContext) => Promise<ToolDefinition<Args>> | ToolDefinition<Args>,
): (context: InitContext) => Promise<ToolDefinition<Args>> | ToolDefinition<Args>;
export function tool(given: object): object {
  if ((typeof given === "object" && given !== null) || typeof given === "function") shared.made.add(given);
  return given;
}

/** Zod 4, whole: `tool.schema.string()`. */
tool.schema = z;

/** A context for tests: it has every field, and its notices go nowhere. */
export function noopContext(fields: Partial<ToolContext> = {}): ToolContext {
  const directory = fields.directory ?? ".";
  return {
    sessionID: "session",
    messageID: "message",
    callID: "call",
    agent: "test",
    profile: "default",
    directory,
    worktree: directory,
    deadline: undefined,
    abort: new AbortController().signal,
    metadata() {},
    progress() {},
    log() {},
    ask: () => Promise.resolve(),
    ...fields,
  };
}

/** A file as an attachment: an image where the type says so. */
export function attachment(data: Uint8Array, mimeType: string, name?: string): Attachment {
  const type = mimeType.startsWith("image/") ? "image" : "file";
  return { type, mimeType, data: Buffer.from(data).toString("base64"), ...(name === undefined ? {} : { name }) };
}

/** What all copies of this module and the host share: what went through `tool()`, and one Zod. */
interface Shared {
  made: WeakSet<object>;
  z: typeof z;
}

const key = Symbol.for("@toolcrib/plugin");
const everywhere = globalThis as unknown as Record<symbol, Shared | undefined>;
const shared: Shared = (everywhere[key] ??= { made: new WeakSet(), z });
