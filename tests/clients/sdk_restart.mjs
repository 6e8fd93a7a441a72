// A client on the official TypeScript SDK whose server is killed and started again: it calls, says so on stdout, waits
// for a line on stdin, calls again, and prints both answers as JSON.
//
// Usage: TEST_TOOLS=target/test-tools node sdk_restart.mjs URL TOOL ARGUMENTS

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const installed = createRequire(join(resolve(process.env.TEST_TOOLS), "npm", "package.json"));
const sdk = (part) => installed(`@modelcontextprotocol/sdk/${part}`);
const { Client } = sdk("client/index.js");
const { StreamableHTTPClientTransport } = sdk("client/streamableHttp.js");

const [url, name, args] = process.argv.slice(2);
const transport = new StreamableHTTPClientTransport(new URL(url));
const client = new Client({ name: "ts-sdk", version: "1" });
await client.connect(transport);
const session = transport.sessionId;
const call = async () => {
  const { content } = await client.callTool({ name, arguments: JSON.parse(args) });
  return content[0].text;
};
const before = await call();
process.stdout.write("ready\n");
const lines = createInterface({ input: process.stdin });
await new Promise((go) => lines.once("line", go));
const after = await call();
const tools = (await client.listTools()).tools.map((tool) => tool.name);
process.stdout.write(`${JSON.stringify({ before, after, tools, same: session === transport.sessionId })}\n`);
process.exit(0);
