// An export of a TypeScript file is a tool: the file's name is its name, Zod checks its arguments.

import { tool } from "@toolcrib/plugin";

export default tool({
  description: "Writes the price label of an item",
  args: {
    item: tool.schema.string().min(1).describe("What is sold"),
    price: tool.schema.number().positive().describe("What it costs"),
    currency: tool.schema.enum(["EUR", "CHF", "USD"]).default("EUR").describe("In which currency"),
  },
  annotations: { readOnlyHint: true },
  execute({ item, price, currency }) {
    return `${item.toUpperCase()}  ${price.toFixed(2)} ${currency}`;
  },
});
