// The tool TOOL_NAME: the file's name is the tool's name. Types are for your editor; nothing has to be built or installed.

import { tool } from "@toolcrib/plugin";

export default tool({
  description: "Says a text, as often as asked",
  args: {
    text: tool.schema.string().describe("What is said"),
    times: tool.schema.number().int().min(1).default(1).describe("How often"),
  },
  annotations: { readOnlyHint: true },
  version: "1.0.0",

  // What the tool does: change this. It may be async; an exception is a failure.
  execute({ text, times }) {
    if (times > 100) throw new Error("a hundred times is enough");
    // For people: what is printed is kept as the tool's log.
    console.log(`times: ${times}`);
    return `${text}\n`.repeat(times);
  },
});
