// The types that a tool file sees.

import type { z } from "zod";

/** What a tool knows about the call that it answers. */
export interface ToolContext {
  /** The session of the client that asks. */
  sessionID: string;
  /** The message that asked for the call. */
  messageID: string;
  /** The call itself. */
  callID: string;
  /** The program that asks, as people call it: `claude`, `copilot`, `opencode`, `codex`, `gemini`, or its own name. */
  agent: string;
  /** The program that asks, as it calls itself, such as `claude-code`. */
  client: string;
  /** The profile of Toolcrib's settings that it uses. */
  profile: string;
  /** The project's folder. Relative paths start here, not at `process.cwd()`. */
  directory: string;
  /** The root of the project's checkout; `directory` where nothing else is known. */
  worktree: string;
  /** When the call's time is up, in milliseconds since 1970. */
  deadline: number | undefined;
  /** Fires when the call is cancelled or its time is up. */
  abort: AbortSignal;
  /** Tells the person who waits what is done now. */
  metadata(input: { title?: string; metadata?: Record<string, unknown>; [field: string]: unknown }): void;
  /** Tells how far the work is. */
  progress(input: { progress?: number; total?: number; message?: string }): void;
  /** Writes a line into Toolcrib's log. */
  log(level: "debug" | "info" | "warn" | "error", message: string): void;
  /** Goes on where a person approved this call, and rejects where nobody was asked. */
  ask(input: {
    permission: string;
    patterns?: string[];
    always?: string[];
    metadata?: Record<string, unknown>;
  }): Promise<void>;
}

/** What an async init is given. */
export interface InitContext {
  /** The project's folder. */
  directory: string;
  /** The same. */
  workingDir: string;
}

/** A file that goes with a result. OpenCode's form is taken too. */
export type Attachment =
  | { type: "text" | "image" | "file"; mimeType: string; text?: string; data?: string | Uint8Array; name?: string }
  | { type: "file"; mime: string; url: string; filename?: string };

/** A result with more than text. */
export interface ToolResult {
  output: string;
  title?: string;
  metadata?: Record<string, unknown>;
  attachments?: Attachment[];
  /** Data that fits `outputSchema`. */
  structured?: unknown;
  /** True: the tool failed, and `output` says why. */
  isError?: boolean;
}

/** A block of MCP's content. What else is in it goes to the client as it is. */
export type Content = { annotations?: Record<string, unknown>; _meta?: Record<string, unknown> } & (
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: string | Uint8Array; mimeType: string }
  | { type: "resource_link"; uri: string; name: string; [field: string]: unknown }
  | {
      type: "resource";
      resource: { uri: string; mimeType?: string; text?: string; blob?: string | Uint8Array; [field: string]: unknown };
    }
);

/** A result in MCP's own form: an MCP client gets it as it is. */
export interface McpResult {
  content: Content[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
}

/** JSON Schema, 2020-12. */
export type JsonSchema = Record<string, unknown>;

export interface Annotations {
  title?: string;
  readOnlyHint?: boolean;
  idempotentHint?: boolean;
  destructiveHint?: boolean;
  openWorldHint?: boolean;
}

export interface Permissions {
  canReadFiles?: boolean;
  canWriteFiles?: boolean;
  canNetwork?: boolean;
  canExecuteCommands?: boolean;
  allowedEnvironmentVars?: string[];
  required?: ("read" | "write" | "network" | "exec")[];
}

export interface Sandbox {
  allowedPaths?: string[];
  allowNetwork?: boolean;
  allowedHosts?: string[];
  maxMemoryMB?: number;
  maxCpuPercent?: number;
  maxExecutionMs?: number;
}

/** What every kind of tool may say of itself. */
export interface ToolOptions {
  /** What people read instead of the name. */
  title?: string;
  /** MCP's icons. */
  icons?: { src: string; mimeType?: string; sizes?: string[]; [field: string]: unknown }[];
  /** MCP's `_meta` of the tool. */
  _meta?: Record<string, unknown>;
  tags?: string[];
  aliases?: string[];
  metadata?: Record<string, unknown>;
  version?: string;
  timeoutMs?: number;
  /** How many calls of this file's tools may run side by side: 16, or the least that one of them says. */
  concurrency?: number;
  /** Variables for the tool's process, such as `{ TOKEN: "secret://tickets" }`. They are there when a call runs. */
  env?: Record<string, string>;
  outputSchema?: z.ZodType | JsonSchema;
  annotations?: Annotations;
  permissions?: Permissions;
  sandbox?: Sandbox;
}

/** A tool as a file exports it. */
export interface ToolDefinition<Args extends z.ZodRawShape = z.ZodRawShape> extends ToolOptions {
  description: string;
  args: Args;
  // A method, so that tools with any arguments go where a tool is asked for.
  execute(args: z.infer<z.ZodObject<Args>>, context: ToolContext): unknown;
}
