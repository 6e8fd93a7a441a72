// a dynamic import of a known module
const path = await import("node:path");
const data = await import("./data.json", { with: { type: "json" } });
export default [path, data];
