import { tool } from "@opencode-ai/plugin";

export default tool({
  description: "Look through pages and tell about each",
  args: { pages: tool.schema.array(tool.schema.string()) },
  async execute({ pages }, context) {
    for (const [index, page] of pages.entries()) {
      context.metadata({ title: `page ${index + 1} of ${pages.length}`, metadata: { page, seen: index } });
      await new Promise((done) => setTimeout(done, 1));
    }
    return { title: "Crawl", output: `${pages.length} pages`, metadata: { count: pages.length } };
  },
});
