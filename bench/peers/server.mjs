// The official TypeScript SDK's server with a tool that does nothing and one that gives back a text, for the bench.
import http from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

function server() {
  const mcp = new McpServer({ name: "peer", version: "1.0.0" });
  mcp.registerTool("noop", { description: "Does nothing" }, async () => ({ content: [{ type: "text", text: "ok" }] }));
  mcp.registerTool("echo", { description: "Gives back the text", inputSchema: { text: z.string() } }, async ({ text }) => ({
    content: [{ type: "text", text }],
  }));
  return mcp;
}

const listener = http.createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  // Stateless: a transport and a server for each request, as the SDK's own examples have it.
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  await server().connect(transport);
  await transport.handleRequest(request, response, JSON.parse(Buffer.concat(chunks).toString() || "null"));
});
listener.listen(0, "127.0.0.1", () => console.log(listener.address().port));
