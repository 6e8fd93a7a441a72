import { tool } from "@opencode-ai/plugin";
import { Order, words } from "./_lib/words.js";

export default tool({
  description: "List the words of a text in order",
  args: {
    text: tool.schema.string(),
    order: tool.schema.enum(Order).default(Order.Alphabet),
  },
  async execute({ text, order }) {
    return { words: words(text, order) };
  },
});
