// A client on the official TypeScript SDK that is not let in: prints what it would write into a log.
//
// Usage: TEST_TOOLS=target/test-tools node sdk_refused.mjs URL TOKEN

import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const installed = createRequire(join(resolve(process.env.TEST_TOOLS), "npm", "package.json"));
const { Client } = installed("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = installed("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [url, token] = process.argv.slice(2);
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const client = new Client({ name: "ts-sdk", version: "1" });
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  console.log(JSON.stringify({ refused: null }));
} catch (error) {
  console.log(JSON.stringify({ refused: String(error) }));
}
