// A client on the official TypeScript SDK: does what it is told against one server and prints what it saw as JSON.
//
// Usage: TEST_TOOLS=target/test-tools node sdk_client.mjs ORDERS stdio COMMAND… | http URL
// ORDERS is JSON: {"text": [tool, arguments], "structured": tool, "long": tool, "draft": path, "plugin": path, "shapes": [tool…]}

import { renameSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const installed = createRequire(join(resolve(process.env.TEST_TOOLS), "npm", "package.json"));
const sdk = (part) => installed(`@modelcontextprotocol/sdk/${part}`);
const { Client } = sdk("client/index.js");
const { StdioClientTransport } = sdk("client/stdio.js");
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = sdk("types.js");

const [orders, kind, ...target] = process.argv.slice(2);
const { text, structured, long, draft, plugin, shapes } = JSON.parse(orders);

const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: target[0], args: target.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(target[0]));
const client = new Client({ name: "ts-sdk", version: "1" });
const changed = new Promise((seen) => {
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => seen(true));
});
await client.connect(transport);

const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
const call = (name, args) => client.callTool({ name, arguments: args });
const saw = {
  serverInfo: client.getServerVersion(),
  protocolVersion: transport.protocolVersion ?? transport._protocolVersion ?? null,
  instructions: client.getInstructions(),
  tools: await names(),
  text: (await call(...text)).content[0].text,
  structured: (await call(structured, {})).structuredContent,
};
try {
  await call("no-such-tool", {});
} catch (error) {
  saw.error = error.code;
}

// This client holds what it gets against the listed schemas.
saw.shapes = {};
for (const name of shapes) saw.shapes[name] = (await call(name, {})).structuredContent ?? null;

// A long output: the start, and then page after page to its end. (It is ASCII: bytes are characters.)
const first = await call(long, {});
const { truncated, outputId: id } = first._meta["toolcrib/metadata"];
saw.truncated = truncated;
saw.whole = first.content[0].text.split("\n\n[truncated: ")[0].replace(/^\[truncated: .*\n\n/, "");
for (let more = true; more; ) {
  const page = await call("read-output", { id, offset: saw.whole.length });
  more = page._meta?.["toolcrib/metadata"]?.nextOffset != null;
  const said = page.content[0].text;
  saw.whole += more ? said.slice(0, said.lastIndexOf("\n[more: ")) : said;
}

renameSync(draft, plugin);
saw.listChangedSeen = await changed;
saw.toolsAfter = await names();
await client.close();
console.log(JSON.stringify(saw));
