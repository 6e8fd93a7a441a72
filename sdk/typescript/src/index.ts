// What a tool file imports: `tool`, the schema builder, and the types. Nothing of the host is in here.

import { z } from "zod";
import type { Attachment, InitContext, ToolContext, ToolDefinition, ToolOptions } from "./types.js";

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

/** A tool in the words of the "tool development guide": its name is the id, its arguments are `parameters`. */
export const Tool = {
  define<Parameters extends z.ZodObject, M extends Tool.Metadata = Tool.Metadata>(
    id: string,
    definition: Tool.Definition<Parameters, M> | ((context: InitContext) => Promise<Tool.Definition<Parameters, M>>),
  ): Tool.Info<Parameters, M> {
    const named = { id, [Symbol.for("@toolcrib/plugin.id")]: id };
    const asOurs = (one: Tool.Definition<Parameters, M>): object => ({ ...one, args: one.parameters });
    const info: object =
      typeof definition === "function"
        ? Object.assign(async (context: InitContext) => asOurs(await definition(context)), named, { init: definition })
        : { ...asOurs(definition), ...named, init: () => definition };
    shared.made.add(info);
    return info as Tool.Info<Parameters, M>;
  },
  createNoopContext: (fields: Partial<ToolContext> = {}): ToolContext => noopContext(fields),
};

export declare namespace Tool {
  type Metadata = Record<string, unknown>;
  type Context = ToolContext;
  interface Result<M extends Metadata = Metadata> {
    title: string;
    metadata: M;
    output: string;
    attachments?: Attachment[];
  }
  interface Definition<Parameters extends z.ZodObject = z.ZodObject, M extends Metadata = Metadata> extends ToolOptions {
    description: string;
    parameters: Parameters;
    execute(args: z.infer<Parameters>, context: ToolContext): Promise<Result<M>> | Result<M>;
  }
  interface Info<Parameters extends z.ZodObject = z.ZodObject, M extends Metadata = Metadata> {
    id: string;
    /** The definition; a promise of it where `define` was given a function. */
    init(context?: InitContext): Definition<Parameters, M> & Promise<Definition<Parameters, M>>;
  }
}

/** A context for tests: it has every field, and its notices go nowhere. */
export function noopContext(fields: Partial<ToolContext> = {}): ToolContext {
  const directory = fields.directory ?? ".";
  return {
    sessionID: "session",
    messageID: "message",
    callID: "call",
    agent: "test",
    client: "test",
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
