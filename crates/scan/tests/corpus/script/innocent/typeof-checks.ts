// asking what is there
export const runtime = typeof Bun !== "undefined" ? "bun" : typeof Deno !== "undefined" ? "deno" : "node";
export const has = typeof fetch === "function" && typeof require;
