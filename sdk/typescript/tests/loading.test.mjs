// How files are loaded: texts in place of files, formats, imports, names, and what is said when it does not work.

import assert from "node:assert/strict";
import { existsSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { folder, runtimes, scriptOf, start, Worker } from "./crib.mjs";

const answer = (value, more = "") => `export default { description: "d", args: {}, execute: () => ${value} };\n${more}`;

for (const runtime of runtimes) {
  const on = (name, run) => test(`${runtime.name}: ${name}`, run);

  /** What a tool of these files answers; the first is the tool file. */
  async function ask(t, files, input = {}, fields = {}) {
    const root = folder(t, files);
    const file = join(root, Object.keys(files)[0]);
    const { worker, tools } = await start(t, runtime, file, { fields: typeof fields === "function" ? fields(root) : fields });
    return worker.result(tools[0].name, input);
  }

  /** How the host refuses this file. */
  async function refused(t, files) {
    const file = join(folder(t, files), Object.keys(files)[0]);
    const worker = new Worker(t, runtime);
    const { error, result } = await worker.initialize(scriptOf(file));
    assert.ok(error, JSON.stringify(result));
    assert.equal(error.code, -32002);
    assert.equal((await worker.ask("health")).result.status, "healthy");
    return { message: error.message, ...error.data };
  }

  /** A project whose packages and neighbours nobody trusts; a bundle and a single file in it that are trusted by themselves. */
  const around = {
    "node_modules/evil/package.json": '{"name": "evil", "main": "index.js"}',
    "node_modules/evil/index.js": "module.exports = 'from the project';",
    "tools/node_modules/near/package.json": '{"name": "near", "main": "index.js"}',
    "tools/node_modules/near/index.js": "module.exports = 'from the tools folder';",
    "tools/neighbour.js": "export default 'from a neighbour';",
    "tools/common.cjs": "module.exports = 'from a neighbour';",
    "package.json": '{"name": "project", "imports": {"#near": "./tools/neighbour.js"}, "exports": {"./x": "./tools/neighbour.js"}}',
  };
  const modules = {
    "env/node_modules/good/package.json": '{"name": "good", "main": "index.js"}',
    "env/node_modules/good/index.js": "module.exports = 'from its environment';",
  };

  for (const [what, text] of Object.entries({
    "a package of the project": 'import evil from "evil";',
    "a package beside it": 'import near from "near";',
    "a neighbour": 'import neighbour from "./neighbour.js";',
    "a package by a dynamic import": 'const evil = await import("evil");',
    "a package whose name is put together": 'const name = "ev" + "il"; const evil = await import(name);',
    "what a package.json above it maps": 'import near from "#near";',
    "what a package.json above it maps, by a dynamic import": 'const name = "#" + "near"; const near = await import(name);',
    "the package it lies in": 'import near from "project/x";',
    "a package by require": 'import { createRequire } from "node:module"; createRequire(import.meta.url)("evil");',
    "a neighbour by require": 'import { createRequire } from "node:module"; createRequire(import.meta.url)("./common.cjs");',
  })) {
    on(`a file that is trusted by itself does not load ${what}`, async (t) => {
      const root = folder(t, { "tools/a.mjs": `${text}\n${answer(1)}`, ...around });
      const file = join(root, "tools/a.mjs");
      const script = scriptOf(file, { alone: true });
      for (const path of Object.keys(script.texts)) if (path !== file) delete script.texts[path];
      delete script.resolved;
      const { error, result } = await new Worker(t, runtime).initialize(script);
      assert.ok(error, JSON.stringify(result));
      if (runtime.name === "deno" && /"(?:#|project)/.test(text)) return; // it has none of these
      // The same file loads where the project is trusted.
      const { result: loaded, error: other } = await new Worker(t, runtime).initialize(scriptOf(file));
      assert.ok(loaded, JSON.stringify(other));
    });
  }

  on("CommonJS that is trusted by itself does not load what lies around it", async (t) => {
    for (const specifier of ["evil", "./common.cjs"]) {
      const text = `const found = require(${JSON.stringify(specifier)});\nmodule.exports = { description: "d", args: {}, execute: () => found };`;
      const root = folder(t, { "tools/a.cjs": text, ...around });
      const file = join(root, "tools/a.cjs");
      const script = { ...scriptOf(file), alone: true, resolved: undefined };
      for (const path of Object.keys(script.texts)) if (path !== file) delete script.texts[path];
      const { error, result } = await new Worker(t, runtime).initialize(script);
      assert.ok(error, JSON.stringify(result));
    }
  });

  on("a file that is trusted by itself has its environment, the SDK and what Node has", async (t) => {
    const text = `import good from "good"; import fs from "node:fs"; import { tool } from "@toolcrib/plugin"; import { z } from "zod";\n${answer("[good, typeof fs, typeof tool, typeof z].join()")}`;
    const root = folder(t, { "tools/a.mjs": text, ...around, ...modules });
    const file = join(root, "tools/a.mjs");
    const fields = { alone: true, modules: join(root, "env/node_modules") };
    const { worker, tools } = await start(t, runtime, file, { fields });
    assert.equal((await worker.result(tools[0].name, {})), "from its environment,object,function,object");
  });

  on("a folder that is trusted by itself does not load what a link in it leads to", async (t) => {
    const root = folder(t, {
      "tools/a/tool.mjs": `const name = "./" + "link.mjs";\nconst { default: it } = await import(name);\n${answer("it")}`,
      "tools/a/inside.mjs": "export default 'inside';",
      ...around,
    });
    const file = join(root, "tools/a/tool.mjs");
    const fields = { alone: true, own: join(root, "tools/a") };
    symlinkSync("inside.mjs", join(root, "tools/a/link.mjs"));
    const { worker, tools } = await start(t, runtime, file, { fields });
    assert.equal((await worker.result(tools[0].name, {})), "inside");
    rmSync(join(root, "tools/a/link.mjs"));
    symlinkSync("../neighbour.js", join(root, "tools/a/link.mjs"));
    const { error, result } = await new Worker(t, runtime).initialize(scriptOf(file, fields));
    assert.ok(error, JSON.stringify(result));
  });

  on("what was sent runs, whatever lies on the disk", async (t) => {
    const files = {
      "tools/a.ts": `import { b } from "./b";\n${answer("({ b, url: import.meta.url, dir: import.meta.dirname, file: import.meta.filename })")}`,
      "tools/b.ts": "export const b: number = 7;",
    };
    const root = folder(t, files);
    const file = join(root, "tools/a.ts");
    const script = scriptOf(file);
    rmSync(join(root, "tools"), { recursive: true });
    const worker = new Worker(t, runtime);
    const { result } = await worker.initialize(script);
    assert.equal(result.tools.length, 1);
    const told = await worker.result("a");
    assert.deepEqual(told, { b: 7, url: `file://${file}`, dir: join(root, "tools"), file });
    assert.ok(!existsSync(join(root, "tools")), "nothing is written beside the user's files");
  });

  on("imports as TypeScript people write them", async (t) => {
    const told = await ask(t, {
      "a.ts": `import { one } from "./lib/one.js"; import { two } from "./two.ts"; import * as dir from "./dir"; import three from "../${"x"}/three.mjs";\n${answer("[one, two, dir.inside, three, typeof dyn.two]", 'const dyn = await import("./two.ts");')}`.replace("../x/", "./x/"),
      "lib/one.ts": 'import { two } from "../two"; export const one = two - 1;',
      "two.ts": "export const two: number = 2;",
      "dir/index.ts": "export const inside = 'dir';",
      "x/three.mts": "export default 3 as number;",
    });
    assert.deepEqual(told, [1, 2, "dir", 3, "number"]);
  });

  on("JSON, with and without an attribute", async (t) => {
    const files = {
      "a.ts": `import one from "./a.json"; import two from "./a.json" with { type: "json" };\n${answer("[one.x, two.x]")}`,
      "a.json": '{ "x": [1, "é"] }',
    };
    assert.deepEqual(await ask(t, files), [[1, "é"], [1, "é"]]);
  });

  on("CommonJS: exports, require, JSON, names, import()", async (t) => {
    const told = await ask(t, {
      "a.cjs": `const b = require("./b"); const data = require("./d.json"); const fs = require("fs");
module.exports = { description: "d", args: {}, execute: async () => ({ b: b.name, again: require("./b") === b, data, fs: typeof fs.readFileSync,
  file: __filename.endsWith("a.cjs"), dir: require("path").basename(__dirname) !== "", esm: (await import("./e.mjs")).e, os: typeof (await import("node:os")).cpus,
  where: require.resolve("./b").endsWith("b.cjs") }) };`,
      "b.cjs": "exports.name = 'b'; exports.self = module.exports.name;",
      "d.json": '{"d": 1}',
      "e.mjs": "export const e = 'esm';",
    });
    assert.deepEqual(told, { b: "b", again: true, data: { d: 1 }, fs: "function", file: true, dir: true, esm: "esm", os: "function", where: true });
  });

  on("CommonJS: every exported tool, by name", async (t) => {
    const one = '{ description: "d", args: {}, execute() { return this === undefined ? "" : __filename } }';
    const root = folder(t, { "many.cts": `exports.first = ${one}; exports.second = ${one}; exports.other = 1;` });
    const { tools } = await start(t, runtime, join(root, "many.cts"));
    assert.deepEqual(tools.map(({ name }) => name).sort(), ["many_first", "many_second"]);
  });

  on("odd characters in paths", async (t) => {
    const files = {
      "a b#ü/tööl.ts": `import b from "./b c.cjs"; import d from "./d'#.json"; import { e } from "./e %.ts";\n${answer("[b.x, d, e, import.meta.dirname.endsWith('/a b#ü')]")}`,
      "a b#ü/b c.cjs": "exports.x = 1;",
      "a b#ü/d'#.json": "2",
      "a b#ü/e %.ts": "export const e: number = 3;",
    };
    const root = folder(t, files);
    const { worker } = await start(t, runtime, join(root, Object.keys(files)[0]), { fields: { stem: "tool" } });
    assert.deepEqual(await worker.result("tool"), [1, 2, 3, true]);
  });

  on("an ES module imports CommonJS", async (t) => {
    const files = {
      "a.ts": `import all, { name, twice } from "./b.cjs";\n${answer("[all.name, name, twice(2)]")}`,
      "b.cjs": "function twice(x) { return 2 * x; }\nmodule.exports = { name: 'b', twice };",
    };
    assert.deepEqual(await ask(t, files), ["b", "b", 4]);
  });

  on("CommonJS requires an ES module where the runtime can", async (t) => {
    const files = {
      "a.cjs": `let got; try { got = require("./b.mjs").b } catch (error) { got = error.message }\nexports.x = { description: "d", args: {}, execute: () => got };`,
      "b.mjs": "export const b = 'from esm';",
    };
    const told = await ask(t, files);
    if (runtime.name === "node" && process.version.startsWith("v20.")) assert.match(told, /Node 20 can't require an ES module/);
    else assert.equal(told, "from esm");
  });

  on("npm packages above the file, and in the crib's cache", async (t) => {
    const files = {
      "p/tools/a.ts": `import both from "both"; import { deep } from "both/deep"; import old from "old"; import { far } from "far"; import { z } from "zod";
export default { description: "d", args: {}, execute: () => [both, deep, old.name, far, z.string().safeParse("x").success] };`,
      "p/node_modules/both/package.json": '{"name":"both","exports":{".":{"import":"./m.mjs","require":"./c.cjs"},"./*":{"import":"./parts/*.mjs"}}}',
      "p/node_modules/both/m.mjs": 'export default "module";',
      "p/node_modules/both/c.cjs": 'module.exports = "commonjs";',
      "p/node_modules/both/parts/deep.mjs": 'export const deep = "deep";',
      "p/node_modules/old/package.json": '{"name":"old","main":"lib/main"}',
      "p/node_modules/old/lib/main.js": 'module.exports = { name: require("./name").name };',
      "p/node_modules/old/lib/name.js": 'exports.name = "old";',
      "cache/node_modules/far/package.json": '{"name":"far","type":"module","main":"far.js"}',
      "cache/node_modules/far/far.js": 'export const far = "far";',
    };
    const told = await ask(t, files, {}, (root) => ({ modules: join(root, "cache/node_modules") }));
    assert.deepEqual(told, ["module", "deep", "old", "far", true]);
  });

  on("packages from CommonJS", async (t) => {
    const files = {
      "p/tools/a.cjs": `const both = require("both"); const far = require("far"); const { z } = require("zod"); const { tool } = require("@toolcrib/plugin");
module.exports = tool({ description: "d", args: {}, execute: () => [both, far.name, z.string().safeParse("x").success] });`,
      "p/node_modules/both/package.json": '{"name":"both","exports":{".":{"import":"./m.mjs","require":"./c.cjs"}}}',
      "p/node_modules/both/m.mjs": 'export default "module";',
      "p/node_modules/both/c.cjs": 'module.exports = "commonjs";',
      "cache/node_modules/far/package.json": '{"name":"far"}',
      "cache/node_modules/far/index.js": 'exports.name = "far";',
    };
    const told = await ask(t, files, {}, (root) => ({ modules: join(root, "cache/node_modules") }));
    assert.deepEqual(told, ["commonjs", "far", true]);
  });

  on("the file's own zod goes first", async (t) => {
    const files = {
      "a.ts": `import { mine } from "zod";\n${answer("mine")}`,
      "node_modules/zod/package.json": '{"name":"zod","type":"module","exports":"./z.js"}',
      "node_modules/zod/z.js": "export const mine = 'own zod';",
    };
    assert.equal(await ask(t, files), "own zod");
  });

  on("every name of the SDK, and its subpath", async (t) => {
    const names = ["@toolcrib/plugin", "@opencode-ai/plugin", "@atomic/plugin", "@opencode-ai/plugin/tool"];
    const lines = names.map((name, at) => `import { tool as t${at} } from "${name}";`);
    const told = await ask(t, { "a.ts": `${lines.join("\n")}\n${answer("[t0 === t1, t1 === t2, t2 === t3, t0.schema.string().parse('x')]")}` });
    assert.deepEqual(told, [true, true, true, "x"]);
  });

  on("enums, top-level await, decorators, a folder's name", async (t) => {
    const files = {
      "weather/tool.ts": `enum Sky { Blue, Grey }
const later = await new Promise<string>((done) => setTimeout(() => done("later"), 1));
function twice(_target: object, context: ClassMethodDecoratorContext) { return function () { return String(context.name) + "!"; }; }
class Say { @twice hello() { return "hello"; } }
export default { description: "d", args: {}, execute: () => [Sky.Grey, later, new Say().hello()] };`,
    };
    const root = folder(t, files);
    const { worker, tools } = await start(t, runtime, join(root, "weather/tool.ts"), { fields: { stem: "weather" } });
    assert.equal(tools[0].name, "weather");
    assert.deepEqual(await worker.result("weather"), [1, "later", "hello!"]);
  });

  on("a file without a tool is no problem", async (t) => {
    const { tools, problems } = await start(t, runtime, join(folder(t, { "a.ts": "export const x: number = 1;" }), "a.ts"));
    assert.deepEqual([tools, problems], [[], []]);
  });

  on("a bad tool hides no other", async (t) => {
    const text = `import { tool } from "@toolcrib/plugin";
const z = tool.schema;
const execute = () => "fine";
export const good = tool({ description: "d", args: {}, execute });
export const dated = tool({ description: "d", args: { inner: z.object({ when: z.date() }) }, execute });

export const halfway = tool({ description: "d", execute } as any);
export const silent = tool({ description: " ", args: {}, execute });
export const odd = tool({ description: "d", args: { x: 5 as any }, execute });
export const init = tool(async () => { throw new Error("no database"); });
export const $name = tool({ description: "d", args: {}, execute });
`;
    const { tools, problems } = await start(t, runtime, join(folder(t, { "a.ts": text }), "a.ts"));
    assert.deepEqual(tools.map(({ name }) => name), ["a_good"]);
    const told = Object.fromEntries(problems.map((problem) => [problem.toolName, problem]));
    assert.deepEqual(Object.keys(told).sort(), ["a_$name", "a_dated", "a_halfway", "a_init", "a_odd", "a_silent"]);
    assert.match(told.a_dated.message, /argument `inner\.when` can't be written as JSON Schema/);
    assert.deepEqual([told.a_dated.line, told.a_dated.errorType, told.a_dated.severity], [5, "ValidationError", "error"]);
    assert.match(told.a_halfway.message, /no `args`/);
    assert.match(told.a_odd.message, /argument `x` has no schema/);
    assert.match(told.a_init.message, /async init failed: no database/);
    assert.equal(told.a_init.line, 10);
    for (const { hint } of problems) assert.ok(hint.length > 5);
  });

  on("an async init is called once, with the project", async (t) => {
    const text = `import { tool } from "@toolcrib/plugin";
let times = 0;
export default tool(async (init) => { times++; return { description: "for " + init.directory, args: { x: tool.schema.number().default(times) }, execute: ({ x }) => x + times }; });`;
    const { worker, tools } = await start(t, runtime, join(folder(t, { "a.ts": text }), "a.ts"), { fields: { directory: "/srv/garden" } });
    assert.equal(tools[0].description, "for /srv/garden");
    assert.equal(tools[0].dynamic, true);
    assert.equal(await worker.result("a"), 2);
    assert.equal(await worker.result("a"), 2);
  });

  on("options are handed on", async (t) => {
    const text = `import { tool } from "@toolcrib/plugin";
export default tool({ description: "d", args: {}, execute: () => ({ n: 1 }), tags: ["x"], aliases: ["y"], metadata: { a: 1 }, title: "T", icons: [{ src: "data:," }], _meta: { "a/b": 1 }, version: "1.2.0", timeoutMs: 5000,
  outputSchema: tool.schema.object({ n: tool.schema.number() }), annotations: { readOnlyHint: true }, permissions: { canNetwork: true }, sandbox: { allowedHosts: ["a.example"] } });`;
    const { worker, tools } = await start(t, runtime, join(folder(t, { "a.ts": text }), "a.ts"));
    const { inputSchema, outputSchema, line, ...rest } = tools[0];
    assert.deepEqual(rest, {
      name: "a", description: "d", tags: ["x"], aliases: ["y"], metadata: { a: 1 }, title: "T", icons: [{ src: "data:," }], _meta: { "a/b": 1 }, version: "1.2.0", timeoutMs: 5000,
      annotations: { readOnlyHint: true }, permissions: { canNetwork: true }, sandbox: { allowedHosts: ["a.example"] },
    });
    assert.equal(outputSchema.properties.n.type, "number");
    assert.deepEqual(await worker.result("a"), { n: 1 });
  });

  on("a syntax error has its line", async (t) => {
    const told = await refused(t, { "a.mjs": 'export const a = 1;\n\nexport const b = ;\n' });
    assert.equal(told.errorType, "SyntaxError");
    assert.equal(told.line, 3);
    assert.ok(told.column > 1 && told.hint);
  });

  on("a missing package is an ImportError with line and remedy", async (t) => {
    const told = await refused(t, { "a.ts": '// first\nimport pad from "left-pad-of-nobody";\nexport const x: number = pad;' });
    assert.equal(told.errorType, "ImportError");
    assert.match(told.message, /left-pad-of-nobody/);
    assert.match(told.hint, /package\.json/);
    assert.equal(told.line, 2);
  });

  on("a missing file and a missing export", async (t) => {
    const file = await refused(t, { "a.ts": '\nimport x from "./gone.js";\nexport default x;' });
    assert.deepEqual([file.errorType, file.line], ["ImportError", 2]);
    assert.match(file.hint, /Check the path/);
    const name = await refused(t, { "a.ts": 'import { gone } from "./b.ts";\nexport default gone;', "b.ts": "export const b = 1;" });
    assert.equal(name.errorType, "ImportError");
    assert.match(name.message, /gone/);
  });

  on("the index of another project's tools is the SDK where it is not there", async (t) => {
    const text = `
import { z } from 'zod';
import { Tool } from '../tools/index.js';
interface ReadMetadata extends Tool.Metadata { path: string }
export const readTool = Tool.define('read', {
  description: 'Reads',
  parameters: z.object({ path: z.string().describe('What is read') }),
  execute: async (args, ctx) => {
    ctx.metadata({ title: \`Reading \${args.path}\` });
    return { title: 'Read', metadata: { path: args.path }, output: 'read ' + args.path };
  },
});`;
    const root = folder(t, { "a.ts": text, "tools/b.ts": text });
    for (const file of ["a.ts", "tools/b.ts"]) {
      const worker = new Worker(t, runtime);
      const { result } = await worker.initialize(scriptOf(join(root, file)));
      assert.deepEqual(result.tools.map(({ name }) => name), ["read"]);
      assert.equal((await worker.result("read", { path: "x" })).output, "read x");
    }
  });

  on("a throw at import", async (t) => {
    const told = await refused(t, { "a.ts": 'type X = 1;\nconst x: string = "y";\nthrow new RangeError("not today " + x);' });
    assert.equal(told.errorType, "ImportError");
    assert.match(told.message, /a\.ts threw while it was loaded: RangeError: not today y/);
    assert.equal(told.line, 3);
    const inner = await refused(t, { "a.ts": 'import "./b.ts";', "b.ts": 'const x: 1 = 1;\nthrow new Error("b");' });
    assert.match(inner.message, /b \(b\.ts, line 2\)/);
    assert.equal(inner.line, undefined);
  });

  on("process.exit at import", async (t) => {
    const told = await refused(t, { "a.ts": "\nprocess.exit(3);\nexport {};" });
    assert.equal(told.errorType, "ImportError");
    assert.match(told.message, /called process\.exit\(3\) while it was loaded/);
    assert.equal(told.line, 2);
  });

  on("a file for another runtime says so", async (t) => {
    const other = runtime.name === "bun" ? "Deno" : "Bun";
    const told = await refused(t, { "a.ts": `export {};\nconst version = ${other}.version;` });
    assert.equal(told.errorType, "ImportError");
    assert.match(told.message, new RegExp(`a\\.ts needs ${other}, and (Node|Bun|Deno) runs it`));
    assert.equal(told.line, 2);
    if (runtime.name === "bun") return;
    const module = await refused(t, { "a.ts": 'import { $ } from "bun";\nexport const x = $;' });
    assert.match(module.message, /needs Bun/);
  });

  on("after a failure the next file loads", async (t) => {
    const root = folder(t, { "bad.ts": "throw 1;", "good.ts": answer('"good"') });
    const worker = new Worker(t, runtime);
    assert.equal((await worker.call("bad")).error.code, -32602);
    assert.ok((await worker.initialize(scriptOf(join(root, "bad.ts")))).error);
    assert.ok((await worker.initialize(scriptOf(join(root, "good.ts")))).result);
    assert.equal(await worker.result("good"), "good");
    assert.deepEqual(readdirSync(root).sort(), ["bad.ts", "good.ts"]);
  });
}
