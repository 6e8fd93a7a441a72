import { tool } from "@opencode-ai/plugin";

export default tool({
  description: "Ask before it does anything",
  args: {},
  async execute(_args, context) {
    await context.ask({ permission: "bash", patterns: ["rm *"], always: [], metadata: {} });
    return "allowed";
  },
});
