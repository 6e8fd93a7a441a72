// an ordinary tool for OpenCode
import { tool } from "@opencode-ai/plugin";
export default tool({
  description: "Adds two numbers",
  args: { a: tool.schema.number(), b: tool.schema.number().describe("second") },
  async execute(args, context) {
    const { agent, sessionID } = context;
    return `${args.a + args.b} for ${agent} in ${sessionID}`;
  },
});
