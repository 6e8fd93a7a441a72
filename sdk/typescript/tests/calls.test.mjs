// What calls give: results, failures, arguments, progress, and that nothing a tool does harms the protocol.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { folder, host, runtimes, start, until, Worker } from "./crib.mjs";

const zod = join(dirname(fileURLToPath(import.meta.url)), "../node_modules/zod");

/** A file with one tool per entry, each named after its key. */
function file(t, tools, head = "", name = "t.ts") {
  const lines = Object.entries(tools).map(([key, body]) => `export const ${key} = tool({ description: "d", ${body} });`);
  return join(folder(t, { [name]: `import { tool } from "@toolcrib/plugin";\nconst z = tool.schema;\n${head}\n${lines.join("\n")}\n` }), name);
}

for (const runtime of runtimes) {
  const on = (name, run) => test(`${runtime.name}: ${name}`, run);
  const open = async (t, tools, head, options) => (await start(t, runtime, file(t, tools, head), options)).worker;

  on("what a result becomes", async (t) => {
    const values = {
      text: "'hi \\u2028 ü'",
      nothing: "undefined",
      object: "({ a: 1 })",
      list: "[1, 'x', null]",
      contract: "({ title: 't', output: 'o', metadata: { m: 1 }, structured: { s: 1 }, isError: true })",
      bytes: "new Uint8Array([1, 2, 3])",
      png: "Buffer.from('89504e470d0a1a0a00', 'hex')",
      date: "new Date(0)",
      url: "new URL('https://a.example/x')",
      big: "12345678901234567890n",
      nested: "({ map: new Map([['k', 1]]), pairs: new Map([[{}, 1]]), set: new Set([1]), big: 5n, huge: 12345678901234567890n, date: new Date(0), bytes: Buffer.from('hi'), error: new TypeError('x'), fn() {} })",
      halves: "({ a: 'x\\ud83d', '\\udc00': '\\ud83d\\ude00', text: '\\\\\\\\ud83d' })",
      own: "({ content: [{ type: 'text', text: 't', annotations: { priority: 1 } }, { type: 'image', data: Buffer.from('hi'), mimeType: 'image/png' }, { type: 'resource_link', uri: 'a:b', name: 'n' }], structuredContent: { a: 1 }, _meta: { 'a/b': 1 }, isError: false })",
      attached: "({ output: 'o', attachments: [{ type: 'file', mimeType: 'a/b', data: new Uint8Array([104, 105]) }] })",
    };
    const worker = await open(t, Object.fromEntries(Object.entries(values).map(([key, value]) => [key, `args: {}, execute: async () => ${value}`])));
    const result = (name) => worker.result(`t_${name}`);
    assert.equal(await result("text"), "hi \u2028 ü");
    assert.equal(await result("nothing"), "");
    assert.deepEqual(await result("object"), { a: 1 });
    assert.deepEqual(await result("list"), [1, "x", null]);
    assert.deepEqual(await result("contract"), { title: "t", output: "o", metadata: { m: 1 }, structured: { s: 1 }, isError: true });
    assert.deepEqual((await result("bytes")).attachments, [{ type: "file", mimeType: "application/octet-stream", data: "AQID" }]);
    assert.equal((await result("png")).attachments[0].mimeType, "image/png");
    assert.equal(await result("date"), "1970-01-01T00:00:00.000Z");
    assert.equal(await result("url"), "https://a.example/x");
    assert.equal(await result("big"), "12345678901234567890");
    assert.deepEqual(await result("nested"), {
      map: { k: 1 }, pairs: [[{}, 1]], set: [1], big: 5, huge: "12345678901234567890", date: "1970-01-01T00:00:00.000Z",
      bytes: "aGk=", error: { name: "TypeError", message: "x" },
    });
    assert.deepEqual(await result("halves"), { a: "x\ufffd", "\ufffd": "\u{1f600}", text: "\\\\ud83d" });
    assert.deepEqual(await result("own"), {
      content: [
        { type: "text", text: "t", annotations: { priority: 1 } },
        { type: "image", data: "aGk=", mimeType: "image/png" },
        { type: "resource_link", uri: "a:b", name: "n" },
      ],
      structuredContent: { a: 1 }, _meta: { "a/b": 1 }, isError: false,
    });
    assert.equal((await result("attached")).attachments[0].data, "aGk=");
  });

  on("failures: words, types, causes, traces, circles", async (t) => {
    const head = `function inner() {\n  throw new TypeError("not so");\n}\ninterface Unused { a: string }`;
    const worker = await open(t, {
      typed: "args: {}, execute() { inner(); }",
      text: "args: {}, execute() { throw 'just words'; }",
      odd: "args: {}, execute() { throw { a: 1 }; }",
      caused: "args: {}, execute() { throw new Error('outer', { cause: new Error('inner reason') }); }",
      circle: "args: {}, execute() { const a: any = { b: [{}] }; a.b[0].c = a; return a; }",
      returned: "args: {}, execute: () => new RangeError('given back')",
      zodded: "args: {}, execute: () => z.object({ a: z.number() }).parse({ a: 'x' })",
      rejects: "args: {}, execute: async () => { await null; inner(); }",
    }, head);
    const typed = await worker.error("t_typed");
    assert.deepEqual([typed.code, typed.message], [-32001, "TypeError: not so"]);
    const lines = typed.data.traceback.split("\n");
    assert.equal(lines.length, 2);
    assert.match(lines[0], /inner \(.*\/t\.ts:4:\d+\)$/);
    assert.match(lines[1], /\/t\.ts:7:\d+\)$/);
    assert.equal((await worker.error("t_text")).message, "just words");
    assert.match((await worker.error("t_odd")).message, /threw \{"a":1\}/);
    assert.equal((await worker.error("t_caused")).message, "outer: inner reason");
    assert.match((await worker.error("t_circle")).message, /refers to itself at `b\[0\]\.c`/);
    assert.equal((await worker.error("t_returned")).message, "RangeError: given back");
    assert.match((await worker.error("t_zodded")).message, /^`a`: .*number/);
    assert.match((await worker.error("t_rejects")).data.traceback, /t\.ts:4:/);
  });

  on("failed system calls tell errno, path and host", async (t) => {
    const worker = await open(t, {
      file: "args: {}, execute: () => fs.readFileSync('/nowhere/at/all')",
      host: "args: { port: z.number() }, execute: ({ port }) => new Promise((_, no) => net.connect(port, '127.0.0.1').on('error', no))",
    }, 'import fs from "node:fs"; import net from "node:net";');
    const { data } = await worker.error("t_file");
    assert.deepEqual([data.errno, data.path], ["ENOENT", "/nowhere/at/all"]);
    const host = await worker.error("t_host", { port: 1 });
    assert.equal(host.data.errno, "ECONNREFUSED");
    if (runtime.name.startsWith("node")) assert.equal(host.data.host, "127.0.0.1:1");
  });

  on("nothing that a tool prints reaches the protocol", async (t) => {
    const worker = await open(t, {
      print: `args: {}, execute: async () => {
        console.log("one"); console.info("two"); console.table([{ a: 1 }]); process.stdout.write("three\\n"); fs.writeSync(1, "four\\n");
        cp.spawnSync("echo", ["five"], { stdio: "inherit" });
        await new Promise((done) => cp.spawn("sh", ["-c", "cat; echo six"], { stdio: "inherit" }).on("close", done));
        return String(fs.readFileSync(0).length);
      }`,
    }, 'import fs from "node:fs"; import cp from "node:child_process";\nconsole.log("at import");');
    assert.equal(await worker.result("t_print"), "0");
    assert.deepEqual(worker.strange, []);
    await until(() => ["at import", "one", "two", "three", "four", "five", "six"].every((word) => worker.stderr.includes(word)), "the log");
  });

  on("arguments: defaults, transforms, refinements, async ones", async (t) => {
    const worker = await open(t, {
      sync: "args: { n: z.coerce.number().default(3), day: z.string().transform((text) => text.length), even: z.number().refine((n) => n % 2 === 0, 'not even').optional() }, execute: (args) => args",
      later: "args: { name: z.string().refine(async (name) => name !== 'taken', 'is taken') }, execute: ({ name }) => name",
      whole: "args: z.object({ a: z.string() }) as any, execute: ({ a }: any) => a",
      json: "args: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } as any, execute: ({ q }: any) => q",
      mixed: "args: { a: z.string(), b: { type: 'number' } as any, c: { type: 'string', required: false } as any }, execute: (args) => args",
    });
    assert.deepEqual(await worker.result("t_sync", { day: "abc", n: "7" }), { n: 7, day: 3 });
    assert.deepEqual(await worker.result("t_sync", { day: "" }), { n: 3, day: 0 });
    assert.match((await worker.error("t_sync", { day: "", even: 3 })).message, /`even`: not even/);
    for (const _ of [1, 2]) {
      assert.equal(await worker.result("t_later", { name: "free" }), "free");
      assert.match((await worker.error("t_later", { name: "taken" })).message, /is taken/);
    }
    assert.equal(await worker.result("t_whole", { a: "x" }), "x");
    assert.equal(await worker.result("t_json", { q: "x" }), "x");
    assert.deepEqual(await worker.result("t_mixed", { a: "x", b: 1 }), { a: "x", b: 1 });
    assert.equal((await worker.error("t_mixed", { a: 1, b: 1 })).code, -32602);
    assert.equal((await worker.error("t_unknown", {})).code, -32602);
    assert.equal((await worker.call("t_sync", "text")).error.code, -32602);
  });

  on("Zod 3, and another copy of Zod 4", async (t) => {
    const text = `import { z as z3 } from ${JSON.stringify(join(zod, "v3/index.js"))};
import { z as z4 } from ${JSON.stringify(join(zod, "index.js"))};
const execute = (args) => args;
export const three = { description: "d", execute, args: { name: z3.string().min(2).describe("who"), n: z3.number().int().default(4), kind: z3.enum(["a", "b"]).optional(),
  deep: z3.object({ list: z3.array(z3.union([z3.string(), z3.null()])) }).optional() } };
export const four = { description: "d", execute, args: { name: z4.string().describe("who"), when: z4.iso.datetime().optional() } };
export const mixed = { description: "d", execute, args: { a: z3.string(), b: z4.string().default("b"), c: { type: "string", default: "c" } } };
export const bad = { description: "d", execute, args: { when: z3.date() } };`;
    const { worker, tools, problems } = await start(t, runtime, join(folder(t, { "t.mjs": text }), "t.mjs"));
    const schema = Object.fromEntries(tools.map(({ name, inputSchema }) => [name, inputSchema]));
    assert.deepEqual(schema.t_three, {
      type: "object",
      properties: {
        name: { type: "string", minLength: 2, description: "who" },
        n: { type: "integer", default: 4 },
        kind: { type: "string", enum: ["a", "b"] },
        deep: { type: "object", properties: { list: { type: "array", items: { anyOf: [{ type: "string" }, { type: "null" }] } } }, required: ["list"] },
      },
      required: ["name"],
    });
    assert.equal(schema.t_four.properties.name.description, "who");
    assert.deepEqual(schema.t_mixed.required, ["a"]);
    assert.deepEqual(await worker.result("t_three", { name: "Ada" }), { name: "Ada", n: 4 });
    assert.match((await worker.error("t_three", { name: "x" })).message, /`name`: /);
    assert.deepEqual(await worker.result("t_mixed", { a: "x", c: "y" }), { c: "y", b: "b", a: "x" });
    assert.match(problems[0].message, /argument `when` is a ZodDate of Zod 3/);
  });

  on("a tool can't end its worker, and what nobody catches is told", async (t) => {
    const worker = await open(t, {
      exit: "args: {}, execute() { process.exit(7); }",
      late: "args: {}, execute: () => new Promise(() => setTimeout(() => { throw new Error('in a timer'); }, 1))",
      loose: "args: {}, execute: () => new Promise(() => { void Promise.reject(new Error('let go')); })",
      after: "args: {}, execute() { setTimeout(() => { throw new Error('too late'); }, 5); return 'done'; }",
      fine: "args: {}, execute: () => 'fine'",
    });
    assert.match((await worker.error("t_exit")).message, /called process\.exit\(7\): a tool returns or throws/);
    assert.equal((await worker.error("t_late")).message, "in a timer");
    assert.equal((await worker.error("t_loose")).message, "let go");
    assert.equal(await worker.result("t_after"), "done");
    await until(() => worker.stderr.includes("too late"), "the log of what came too late");
    assert.equal(await worker.result("t_fine"), "fine");
  });

  on("of several calls the one fails whose timer threw", async (t) => {
    const worker = await open(t, {
      wait: "args: { throws: z.boolean() }, execute: async ({ throws }, { metadata }) => { await null; metadata({ title: 'here' }); if (throws) { await new Promise(() => setTimeout(() => { throw new Error('mine'); }, 1)); } await gate; return 'whole'; }",
      open: "args: {}, execute: () => release()",
    }, "let release = () => {}; const gate = new Promise<void>((done) => { release = done; });");
    const calls = [false, true, false].map((throws) => worker.call("t_wait", { throws }));
    if (runtime.name === "deno") {
      // Deno does not say whose timer it was: nobody is blamed, and the log has it.
      void calls[1].catch(() => {});
      await until(() => worker.stderr.includes("mine"), "the log");
    } else assert.equal((await calls[1]).error.message, "mine");
    await worker.result("t_open");
    assert.deepEqual([(await calls[0]).result, (await calls[2]).result], ["whole", "whole"]);
  });

  on("lines are right in CommonJS and without a map", async (t) => {
    const text = "// first\nconst x = 1;\nfunction inner() {\n  throw new Error('line 4');\n}\n";
    const plain = "{ description: 'd', args: {}, execute: () => inner() }";
    const root = folder(t, {
      "c.cjs": `${text}module.exports = ${plain};`,
      "c.cts": `interface X {\n  a: 1;\n}\n${text}module.exports = ${plain};`,
      "m.mjs": `${text}export default ${plain};`,
    });
    for (const [name, line] of [["c.cjs", 4], ["c.cts", 7], ["m.mjs", 4]]) {
      const { worker } = await start(t, runtime, join(root, name));
      const { traceback } = (await worker.error(name[0])).data;
      assert.match(traceback.split("\n")[0], new RegExp(`inner \\(.*/${name}:${line}:\\d+\\)$`));
    }
    // The crib may strip types in place: the text has the author's lines, and no map.
    const typed = "interface X {\n  a: 1;\n}\n";
    const file = join(folder(t, { "s.ts": typed + text + `export default ${plain};` }), "s.ts");
    const worker = new Worker(t, runtime);
    const script = { file, directory: dirname(file), texts: { [file]: { format: "module", text: `${typed.replace(/[^\n]/g, " ")}${text}export default ${plain};` } } };
    assert.equal((await worker.initialize(script)).result.tools[0].line, 9);
    assert.match((await worker.error("s")).data.traceback, /s\.ts:7:\d+\)/);
  });

  on("calls run side by side, health in between, notices in order", async (t) => {
    const worker = await open(t, {
      meet: `args: { last: z.boolean() }, execute: async ({ last }, context) => {
        context.progress({ progress: 1, total: 2, message: "here" });
        context.log("warn", "a word");
        if (last) open(); else await gate;
        return context.profile + " " + (context.deadline! > Date.now());
      }`,
    }, "let open = () => {}; const gate = new Promise<void>((done) => { open = done; });");
    const first = worker.call("t_meet", { last: false }, { profile: "p" });
    await until(() => worker.notices.length === 3, "all notices");
    assert.deepEqual(worker.notices.map(({ method, params }) => [method, params]), [
      ["progress", { id: first.id, progress: 1, total: 2, message: "here" }],
      ["log", { level: "warn", message: "a word" }],
      // It does not keep its thread, so the next call may come.
      ["waiting", { id: first.id }],
    ]);
    assert.equal((await worker.ask("health")).result.status, "healthy");
    assert.equal(await worker.result("t_meet", { last: true }, { profile: "q" }), "q true");
    assert.equal((await first).result, "p true");
  });

  on("abort: an AbortError after cancel is called cancelled", async (t) => {
    const worker = await open(t, {
      wait: "args: {}, execute: (_, { abort, metadata }) => new Promise((_, no) => { abort.addEventListener('abort', () => no(abort.reason)); metadata({ title: 'w' }); })",
    });
    const answer = worker.call("t_wait");
    await until(() => worker.notices.length > 0, "the notice");
    worker.tell("cancel", { id: answer.id });
    assert.deepEqual((await answer).error, { code: -32001, message: "cancelled" });
  });

  on("messages: large ones, split ones, wrong ones", async (t) => {
    const worker = await open(t, { echo: "args: { text: z.string() }, execute: ({ text }) => text" });
    const text = "ü\u2028€ ".repeat(400_000);
    assert.equal(await worker.result("t_echo", { text }), text);
    const whole = JSON.stringify({ jsonrpc: "2.0", id: "split", method: "execute", params: { tool: "t_echo", input: { text: "ö" } } });
    const answer = worker.answerTo("split");
    const bytes = Buffer.from(`${whole}\n\n`);
    const middle = bytes.indexOf(Buffer.from("ö")) + 1;
    worker.write(bytes.subarray(0, middle));
    await worker.stderr;
    worker.write(bytes.subarray(middle));
    assert.equal((await answer).result, "ö");
    assert.equal((await worker.ask("tea")).error.code, -32601);
    const broken = worker.answerTo(null);
    worker.write("{nonsense\n");
    assert.equal((await broken).error.code, -32700);
    const many = await Promise.all(Array.from({ length: 200 }, (_, n) => worker.result("t_echo", { text: String(n) })));
    assert.deepEqual(many, Array.from({ length: 200 }, (_, n) => String(n)));
  });

  on("the end of stdin ends the host, and so does SIGTERM", async (t) => {
    const worker = await open(t, { wait: "args: {}, execute: () => new Promise(() => setInterval(() => {}, 1000))" });
    void worker.call("t_wait").catch(() => {});
    assert.equal(await worker.end(), 0);
    const other = await open(t, { fine: "args: {}, execute: () => { console.log('printed'); return 'fine' }" }, "", { pipes: false });
    // Without real pipes it works too; what is printed goes to stderr.
    assert.equal(await other.result("t_fine"), "fine");
    assert.deepEqual(other.strange, []);
    other.kill("SIGTERM");
    assert.ok(["SIGTERM", 143].includes(await other.exit));
  });

  on("fetch goes through the proxy that the environment names", async (t) => {
    const asked = [];
    const server = createServer((request, answer) => {
      asked.push(request.url);
      answer.end("from the proxy");
    });
    server.on("connect", (request, socket) => {
      asked.push(`CONNECT ${request.url}`);
      const { port } = server.address();
      const onward = connect(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        onward.pipe(socket).pipe(onward);
      });
      for (const end of [socket, onward]) end.on("error", () => {});
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    t.after(() => server.close());
    const proxy = `http://127.0.0.1:${server.address().port}`;
    const env = { HTTP_PROXY: proxy, http_proxy: proxy };
    const worker = await open(t, { get: "args: {}, execute: async () => (await fetch('http://garden.example/x')).text()" }, "", { env });
    assert.equal(await worker.result("t_get"), "from the proxy");
    assert.ok(asked.some((url) => url.includes("garden.example")));
  });
}

test("Node 20 says when its flag is missing", { skip: !process.version.startsWith("v20.") }, async (t) => {
  const worker = new Worker(t, { command: [process.execPath] });
  const path = join(folder(t, { "t.mjs": "export default 1;" }), "t.mjs");
  const script = { file: path, directory: dirname(path), texts: { [path]: { format: "module", text: "export default 1;" } } };
  assert.match((await worker.initialize(script)).error.message, /--experimental-vm-modules/);
});

test("a host that is fed from a file answers and ends", () => {
  for (const { command } of runtimes) {
    const feed = `printf '{"jsonrpc":"2.0","id":1,"method":"health"}\\n' >"$TMP/in" && "$@" <"$TMP/in"`;
    const words = ["-c", `TMP=$(mktemp -d); ${feed}; code=$?; rm -r "$TMP"; exit $code`, "sh", ...command, host];
    const { stdout, status } = spawnSync("sh", words, { encoding: "utf8", timeout: 20_000 });
    assert.deepEqual([JSON.parse(stdout).result.status, status], ["healthy", 0]);
  }
});

test("a host without a script says what it needs", async (t) => {
  const worker = new Worker(t, runtimes[0]);
  const { error } = await worker.ask("initialize", { protocolVersion: "1.0" });
  assert.equal(error.code, -32602);
  assert.match(error.message, /params\.script is missing/);
});
