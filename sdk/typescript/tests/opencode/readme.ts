import { readFile } from "node:fs/promises";
import path from "node:path";
import { tool } from "@opencode-ai/plugin";

export default tool({
  description: "Read the first line of a file of the project",
  args: { file: tool.schema.string().default("README.md") },
  async execute({ file }, context) {
    const text = await readFile(path.join(context.directory, file), "utf8");
    return text.split("\n")[0]!;
  },
});
