// What Zod takes is taken: the schema that agents see is its input side, and Zod has the last word.

import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { folder, runtimes, start } from "./crib.mjs";

function file(t, text) {
  return join(folder(t, { "t.ts": `import { tool, Tool, noopContext } from "@toolcrib/plugin";\nconst z = tool.schema;\n${text}\n` }), "t.ts");
}

for (const runtime of runtimes) {
  const on = (name, run) => test(`${runtime.name}: ${name}`, run);

  on("coerce, preprocess, catch and unknown keys", async (t) => {
    const text = `const execute = (args: any) => args;
export const f = tool({ description: "d", execute, args: {
  n: z.coerce.number().min(1).describe("how many").optional(),
  day: z.coerce.date().transform((day) => day.getTime()).optional(),
  yes: z.coerce.boolean().optional(),
  text: z.coerce.string().optional(),
  list: z.preprocess((given) => (typeof given === "string" ? given.split(",") : given), z.array(z.string())).optional(),
  kind: z.enum(["a", "b"]).catch("a"),
} });
export const strict = tool({ description: "d", execute, args: z.strictObject({ a: z.string() }) as any });
export const plain = tool({ description: "d", execute, args: { a: { type: "string" } as any } });
export const mixed = tool({ description: "d", execute, args: { a: z.string(), b: { type: "string" } as any } });`;
    const { worker, tools, problems } = await start(t, runtime, file(t, text));
    assert.deepEqual(problems, []);
    const told = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
    const { properties, required, additionalProperties } = told.t_f.inputSchema;
    assert.equal(additionalProperties, undefined);
    assert.equal(required, undefined);
    assert.deepEqual(properties.n, { type: ["number", "string", "boolean", "null"], minimum: 1, description: "how many" });
    assert.deepEqual(properties.day, { type: ["string", "number"] });
    assert.deepEqual(properties.text, { type: ["string", "number", "boolean", "null"] });
    assert.deepEqual(properties.list, { anyOf: [{ type: "array", items: { type: "string" } }, {}] });
    assert.deepEqual(properties.kind, { anyOf: [{ type: "string", enum: ["a", "b"] }, {}], default: "a" });
    assert.equal(told.t_f.checksArguments, true);
    assert.equal(told.t_strict.inputSchema.additionalProperties, false);
    assert.equal(told.t_plain.inputSchema.additionalProperties, false);
    assert.equal(told.t_plain.checksArguments, undefined);
    assert.deepEqual(told.t_mixed.checksArguments, ["a"]);
    const given = { n: "5", day: "1970-01-01", yes: 1, text: 7, list: "x,y", kind: "zzz", unknown: true };
    assert.deepEqual(await worker.result("t_f", given), { n: 5, day: 0, yes: true, text: "7", list: ["x", "y"], kind: "a" });
    assert.equal((await worker.error("t_f", { n: "none" })).code, -32602);
    assert.equal((await worker.error("t_strict", { a: "x", b: 1 })).code, -32602);
  });

  on("a promise is told what to use instead", async (t) => {
    const text = 'export const f = tool({ description: "d", args: { a: z.promise(z.string()) }, execute: () => "x" });';
    const { problems } = await start(t, runtime, file(t, text));
    assert.match(problems[0].message, /JSON has no promises/);
    assert.match(problems[0].hint, /z\.string\(\) in place of z\.promise/);
  });

  on("Tool.define: the id is the name", async (t) => {
    const text = `interface ReadMetadata extends Tool.Metadata { path: string }
export const readTool = Tool.define("read", {
  description: "Read a file",
  parameters: z.object({ path: z.string().describe("Which"), limit: z.number().default(3) }),
  execute: async (args, ctx) => {
    ctx.metadata({ title: "Reading" });
    return { title: "Read " + args.path, metadata: { path: args.path }, output: "x".repeat(args.limit) };
  },
});
export const taskTool = Tool.define("task", async (ctx) => ({
  description: "In " + (typeof ctx?.workingDir),
  parameters: z.object({ agent: z.enum(["one"] as [string, ...string[]]) }),
  execute: async (args) => ({ title: "t", metadata: { agent: args.agent }, output: args.agent }),
}));
export const own = tool({ description: "d", args: {}, execute: async () => {
  const result = await readTool.init().execute({ path: "/a", limit: 2 }, Tool.createNoopContext());
  return result.output;
} });`;
    const { worker, tools, problems } = await start(t, runtime, file(t, text));
    assert.deepEqual(problems, []);
    assert.deepEqual(tools.map(({ name }) => name).sort(), ["read", "t_own", "task"]);
    assert.deepEqual(tools.find(({ name }) => name === "read").inputSchema.required, ["path"]);
    assert.equal(tools.find(({ name }) => name === "task").description, "In string");
    assert.deepEqual(await worker.result("read", { path: "/a" }), { title: "Read /a", metadata: { path: "/a" }, output: "xxx" });
    assert.equal((await worker.result("task", { agent: "one" })).output, "one");
    assert.equal(await worker.result("t_own"), "xx");
  });

  on("variables and how many calls at once are handed on", async (t) => {
    const text = `export const a = tool({ description: "d", args: {}, env: { TOKEN: "secret://tickets" }, execute: () => "x" });
export const b = tool({ description: "d", args: {}, concurrency: 1, execute: () => "x" });
export const c = tool({ description: "d", args: {}, concurrency: 0, execute: () => "x" });`;
    const { tools, problems, concurrency } = await start(t, runtime, file(t, text));
    assert.deepEqual(tools.find(({ name }) => name === "t_a").env, { TOKEN: "secret://tickets" });
    assert.equal(concurrency, 1);
    assert.match(problems[0].message, /`concurrency` is not a number of calls/);
  });
}
