import { tool } from "@opencode-ai/plugin";

export default tool({
  description: "Wait until somebody stops it",
  args: {},
  async execute(_args, context) {
    context.metadata({ title: "waiting" });
    await new Promise<void>((_, reject) => {
      context.abort.addEventListener("abort", () => reject(new Error("stopped by the caller")), { once: true });
    });
    return "never";
  },
});
