// The SDK itself, and what the project ships in its manner: the template and the example.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { folder, runtimes, start } from "./crib.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../../..");
const sdk = await import("../dist/plugin.js");

test("tool() gives back what it is given, and tool.schema is Zod", () => {
  const given = { description: "d", args: {}, execute: () => "x" };
  assert.equal(sdk.tool(given), given);
  assert.equal(sdk.tool.schema, sdk.z);
  assert.equal(sdk.default, sdk.z);
  assert.deepEqual(sdk.tool.schema.object({ a: sdk.string().default("x") }).parse({}), { a: "x" });
  const again = createRequire(import.meta.url)("../dist/plugin.cjs");
  assert.equal(again.tool.schema.string().parse("x"), "x");
});

test("Zod's other languages are there when asked for", () => {
  const { de } = sdk.z.locales;
  assert.match(de().localeError({ code: "invalid_type", expected: "string", input: 1 }), /Ungültige Eingabe/);
});

test("noopContext has every field", () => {
  const context = sdk.noopContext({ directory: "/srv" });
  assert.deepEqual([context.directory, context.worktree, context.abort.aborted], ["/srv", "/srv", false]);
  context.metadata({ title: "t" });
  context.progress({ progress: 1 });
  context.log("info", "word");
  assert.equal(sdk.attachment(new Uint8Array([1]), "image/png").type, "image");
});

test("the types fit tools as people write them", (t) => {
  const path = join(here, "..");
  const files = readdirSync(join(here, "opencode")).filter((name) => name.endsWith(".ts"));
  const all = [...files.map((name) => `tests/opencode/${name}`), "../../templates/typescript/tool.ts", "../../examples/typescript-file/.toolcrib/tools/recipe.ts"];
  const paths = ["toolcrib", "opencode-ai", "atomic"].map((name) => [`@${name}/plugin`, ["./dist/index.d.ts"]]);
  const config = {
    extends: join(path, "tsconfig.json"),
    compilerOptions: {
      paths: Object.fromEntries(paths.map(([name, to]) => [name, to.map((file) => join(path, file))])),
      typeRoots: [join(path, "node_modules/@types")],
      module: "preserve",
      moduleResolution: "bundler",
      resolveJsonModule: true,
      noUnusedParameters: false,
    },
    include: [],
    files: all.map((file) => join(path, file)),
  };
  const place = folder(t, { "tsconfig.json": JSON.stringify(config) });
  const compiler = join(path, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [compiler, "-p", place], { encoding: "utf8" });
  assert.equal(status, 0, stdout);
});

for (const runtime of runtimes) {
  test(`${runtime.name}: the template is a tool`, async (t) => {
    const place = folder(t, { "shout.ts": readFileSync(join(root, "templates/typescript/tool.ts"), "utf8") });
    const { worker, tools } = await start(t, runtime, join(place, "shout.ts"));
    const other = JSON.parse(readFileSync(join(root, "templates/node/tool.json"), "utf8"));
    // Zod leaves out what nobody asked for; the program refuses it.
    assert.deepEqual({ ...tools[0].inputSchema, additionalProperties: false }, other.inputSchema);
    assert.equal(tools[0].description, other.description);
    assert.equal(await worker.result("shout", { text: "ho", times: 2 }), "ho\nho\n");
    assert.equal((await worker.error("shout", { text: "x", times: 101 })).message, "a hundred times is enough");
  });

  test(`${runtime.name}: the example works`, async (t) => {
    const place = folder(t, {});
    cpSync(join(root, "examples/typescript-file"), place, { recursive: true });
    const tools = join(place, ".toolcrib/tools");
    const workers = new Map();
    for (const name of readdirSync(tools).filter((entry) => !entry.startsWith("_"))) {
      const started = await start(t, runtime, join(tools, name), { fields: { directory: place } });
      assert.deepEqual(started.problems, []);
      for (const tool of started.tools) workers.set(tool.name, started.worker);
    }
    for (const call of JSON.parse(readFileSync(join(place, "calls.json"), "utf8"))) {
      const { result, error } = await workers.get(call.tool).call(call.tool, call.arguments);
      const output = error ? error.message : typeof result === "string" ? result : JSON.stringify(result);
      assert.ok(output.includes(call.outputContains), output);
      assert.equal(error !== undefined, call.isError ?? false);
    }
    assert.ok(!existsSync(join(tools, "node_modules")));
  });
}
