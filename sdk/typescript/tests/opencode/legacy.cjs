const { tool } = require("@opencode-ai/plugin");
const { basename } = require("node:path");

module.exports = tool({
  description: "Name the file that this tool lies in",
  args: { loud: tool.schema.boolean().optional() },
  async execute({ loud }) {
    const name = basename(__filename);
    return loud ? name.toUpperCase() : name;
  },
});
