import { tool } from "@opencode-ai/plugin";

export default tool({
  description: "Say how a deployment would run",
  args: {
    stage: tool.schema.enum(["test", "staging", "production"]).describe("Where to"),
    tag: tool.schema.string().optional().describe("Which version; the newest when left out"),
    retries: tool.schema.number().int().min(0).max(5).default(2).describe("How often it is tried again"),
    dryRun: tool.schema.boolean().default(true),
  },
  async execute(args) {
    return `${args.stage} ${args.tag ?? "newest"} retries=${args.retries} dry=${args.dryRun}`;
  },
});
