import { tool } from "@opencode-ai/plugin";

// The smallest PNG there is.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export default tool({
  description: "Draw a chart",
  args: { title: tool.schema.string() },
  async execute({ title }) {
    return {
      title,
      output: "one chart",
      metadata: {},
      attachments: [
        { type: "file" as const, mime: "image/png", url: `data:image/png;base64,${pixel}`, filename: "chart.png" },
        { type: "file" as const, mime: "text/csv", url: `data:text/csv,${encodeURIComponent("a,b\n1,2")}` },
      ],
    };
  },
});
