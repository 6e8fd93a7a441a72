import { tool } from "@atomic/plugin";

export default tool({
  description: "Tell what the tool knows about its call",
  args: {},
  async execute(_args, context) {
    const { sessionID, messageID, callID, agent, directory, worktree, abort } = context;
    return JSON.stringify({ sessionID, messageID, callID, agent, directory, worktree, aborted: abort.aborted });
  },
});
