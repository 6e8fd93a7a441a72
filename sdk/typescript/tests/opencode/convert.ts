import { tool } from "@opencode-ai/plugin";

// Several tools in one file: convert_length and convert_weight.

export const length = tool({
  description: "Convert metres to feet",
  args: { metres: tool.schema.number() },
  async execute({ metres }) {
    return `${(metres * 3.28084).toFixed(2)} ft`;
  },
});

export const weight = tool({
  description: "Convert kilograms to pounds",
  args: { kilograms: tool.schema.number() },
  async execute({ kilograms }) {
    return `${(kilograms * 2.20462).toFixed(2)} lb`;
  },
});

export const factors = { metres: 3.28084, kilograms: 2.20462 };
