import { tool } from "@opencode-ai/plugin";

const z = tool.schema;

const item = z.object({
  sku: z.string().min(3).describe("The article's number"),
  count: z.number().int().positive(),
  notes: z.array(z.string()).optional(),
});

export default tool({
  description: "Sum up an order",
  args: {
    customer: z.object({ name: z.string(), address: z.object({ city: z.string(), zip: z.string().optional() }) }),
    items: z.array(item).min(1),
    pay: z.union([z.literal("cash"), z.object({ card: z.string() })]),
    labels: z.record(z.string(), z.number()).optional(),
  },
  async execute({ customer, items, pay }) {
    const pieces = items.reduce((sum, { count }) => sum + count, 0);
    const how = pay === "cash" ? "cash" : `card ${pay.card}`;
    return `${pieces} pieces for ${customer.name} in ${customer.address.city}, ${how}`;
  },
});
