// Tools in the manner of OpenCode's documentation run as they are, on every runtime.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { folder, runtimes, start, until } from "./crib.mjs";

const place = join(dirname(fileURLToPath(import.meta.url)), "opencode");

for (const runtime of runtimes) {
  const on = (name, run) => test(`${runtime.name}: ${name}`, run);
  const open = (t, file, options) => start(t, runtime, join(place, file), options);

  on("a default export has the file's name", async (t) => {
    const { worker, tools, problems, protocolVersion, concurrency } = await open(t, "add.ts");
    assert.deepEqual(problems, []);
    assert.equal(protocolVersion, "1.1");
    assert.equal(concurrency, 16);
    assert.deepEqual(tools[0].inputSchema, {
      type: "object",
      properties: {
        a: { type: "number", description: "The first number" },
        b: { type: "number", description: "The second number" },
      },
      required: ["a", "b"],
    });
    assert.equal(tools[0].line, 3);
    assert.equal(await worker.result("add", { a: 2, b: 40 }), "42");
  });

  on("named exports have both names, other exports are passed over", async (t) => {
    const { worker, tools, problems } = await open(t, "convert.ts");
    assert.deepEqual(tools.map(({ name }) => name).sort(), ["convert_length", "convert_weight"]);
    assert.deepEqual(problems, []);
    assert.deepEqual(tools.map(({ line }) => line).sort((a, b) => a - b), [5, 13]);
    assert.equal(await worker.result("convert_length", { metres: 10 }), "32.81 ft");
    assert.equal(await worker.result("convert_weight", { kilograms: 1 }), "2.20 lb");
  });

  on("enums, optional, described and default arguments", async (t) => {
    const { worker, tools } = await open(t, "deploy.ts");
    const { properties, required } = tools[0].inputSchema;
    assert.deepEqual(required, ["stage"]);
    assert.deepEqual(properties.stage, { type: "string", enum: ["test", "staging", "production"], description: "Where to" });
    assert.equal(properties.retries.default, 2);
    assert.equal(await worker.result("deploy", { stage: "test" }), "test newest retries=2 dry=true");
    const refused = await worker.error("deploy", { stage: "moon", retries: 9 });
    assert.equal(refused.code, -32602);
    assert.match(refused.message, /`stage`: .*`retries`: /);
    assert.deepEqual(refused.data.issues.map(({ path }) => path), [["stage"], ["retries"]]);
  });

  on("nested Zod", async (t) => {
    const { worker, tools } = await open(t, "order.ts");
    assert.equal(tools[0].inputSchema.properties.items.items.properties.sku.minLength, 3);
    const order = {
      customer: { name: "Ada", address: { city: "London" } },
      items: [{ sku: "abc", count: 2 }, { sku: "def", count: 1, notes: ["red"] }],
      pay: { card: "x" },
    };
    assert.equal(await worker.result("order", order), "3 pieces for Ada in London, card x");
    order.items[1].sku = "d";
    assert.match((await worker.error("order", order)).message, /`items\[1\]\.sku`/);
  });

  on("context.metadata is progress", async (t) => {
    const { worker } = await open(t, "crawl.ts");
    const answer = worker.call("crawl", { pages: ["a", "b"] });
    assert.deepEqual((await answer).result, { title: "Crawl", output: "2 pages", metadata: { count: 2 } });
    const told = worker.notices.filter(({ method }) => method === "progress");
    assert.deepEqual(told.map(({ method, params }) => [method, params]), [
      ["progress", { id: answer.id, title: "page 1 of 2", data: { page: "a", seen: 0 } }],
      ["progress", { id: answer.id, title: "page 2 of 2", data: { page: "b", seen: 1 } }],
    ]);
  });

  on("attachments in OpenCode's form", async (t) => {
    const { worker } = await open(t, "chart.ts");
    const { attachments, title } = await worker.result("chart", { title: "Sales" });
    assert.equal(title, "Sales");
    assert.deepEqual([attachments[0].type, attachments[0].mimeType, attachments[0].name], ["image", "image/png", "chart.png"]);
    assert.equal(Buffer.from(attachments[0].data, "base64").subarray(1, 4).toString(), "PNG");
    assert.equal(Buffer.from(attachments[1].data, "base64").toString(), "a,b\n1,2");
  });

  on("abort fires on cancel", async (t) => {
    const { worker } = await open(t, "wait.ts");
    const answer = worker.call("wait");
    await until(() => worker.notices.length > 0, "the notice");
    assert.equal((await worker.ask("health")).result.status, "healthy");
    worker.tell("cancel", { id: "unknown" });
    worker.tell("cancel", { id: answer.id });
    const { error } = await answer;
    assert.equal(error.code, -32001);
    assert.equal(error.message, "stopped by the caller");
  });

  on("a plain object without tool(), with JSON Schema", async (t) => {
    const { worker, tools } = await open(t, "plain.js");
    assert.deepEqual(tools[0].inputSchema.required, ["text"]);
    assert.equal(await worker.result("plain", { text: "abc", upper: true }), "CBA");
  });

  on("files relative to context.directory", async (t) => {
    const directory = folder(t, { "README.md": "# Garden\nmore" });
    const { worker } = await open(t, "readme.ts");
    assert.equal(await worker.result("readme", {}, { directory }), "# Garden");
    const { data, message } = await worker.error("readme", { file: "gone.md" }, { directory });
    assert.match(message, /gone\.md/);
    assert.equal(data.errno, "ENOENT");
    assert.equal(data.path, join(directory, "gone.md"));
  });

  on("CommonJS", async (t) => {
    const { worker, tools } = await open(t, "legacy.cjs");
    assert.equal(tools[0].line, 4);
    assert.equal(await worker.result("legacy", { loud: true }), "LEGACY.CJS");
  });

  on("a relative import with an enum and JSON", async (t) => {
    const { worker } = await open(t, "words.ts");
    assert.deepEqual(await worker.result("words", { text: "The end of a bee", order: "length" }), { words: ["end", "bee"] });
  });

  on("the context has OpenCode's fields", async (t) => {
    const { worker } = await open(t, "whoami.ts");
    const context = { sessionId: "s", messageId: "m", callId: "c", agent: "claude-code", directory: "/srv/garden" };
    assert.deepEqual(JSON.parse(await worker.result("whoami", {}, context)), {
      sessionID: "s",
      messageID: "m",
      callID: "c",
      agent: "claude-code",
      directory: "/srv/garden",
      worktree: "/srv/garden",
      aborted: false,
    });
  });

  on("ask() is denied", async (t) => {
    const { worker } = await open(t, "permission.ts");
    assert.match((await worker.error("permission")).message, /^denied: .*nobody approved this call/);
  });
}
