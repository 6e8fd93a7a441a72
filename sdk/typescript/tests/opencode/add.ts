import { tool } from "@opencode-ai/plugin";

export default tool({
  description: "Add two numbers",
  args: {
    a: tool.schema.number().describe("The first number"),
    b: tool.schema.number().describe("The second number"),
  },
  async execute(args) {
    return (args.a + args.b).toString();
  },
});
