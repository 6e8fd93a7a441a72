// Plain JavaScript without an import: an object with these three fields is a tool.
export default {
  description: "Turn a title into a name for a file or a URL",
  args: {
    title: { type: "string", description: "The text that becomes a name" },
    separator: { type: "string", enum: ["-", "_"], default: "-", description: "What stands between words" },
  },
  annotations: { readOnlyHint: true },
  execute: ({ title, separator = "-" }) =>
    title
      .normalize("NFKD")
      .replace(/\p{M}/gu, "")
      .toLowerCase()
      .split(/[^a-z0-9]+/)
      .filter(Boolean)
      .join(separator),
};
