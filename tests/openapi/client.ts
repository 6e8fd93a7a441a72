// Uses the types that openapi-typescript made of /openapi.json, and prints what it saw as JSON.
//
// Usage: node client.js URL TOKEN TOOL, compiled beside `api.d.ts`

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [url, token, name] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

const call = (args: components["schemas"]["CallBody"]["arguments"]) =>
  client.POST("/api/tools/{name}/call", { params: { path: { name } }, body: { arguments: args } });

const listed = await client.GET("/api/tools");
const shown = await client.GET("/api/tools/{name}", { params: { path: { name } } });
const health = await client.GET("/api/health");
const outcome = await call({ word: "hello" });
const refused = await call({ word: 3 });
if (!outcome.data || !listed.data || !refused.error) throw new Error(JSON.stringify([outcome, listed, refused]));
// A call that waits for a person has no outcome yet.
if ("error" in outcome.data) throw new Error(outcome.data.error.message);
const exitCode: unknown = outcome.data.metadata["exitCode"];
console.log(
  JSON.stringify({
    tools: listed.data.tools.map((one) => one.name),
    description: shown.data?.description,
    version: health.data?.version,
    output: outcome.data.output,
    refused: refused.error.error.code,
    exitCode,
  }),
);
