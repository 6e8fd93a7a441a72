import { tool } from "@toolcrib/plugin";
import { recipes } from "./_lib/recipes";

const z = tool.schema;
const readOnly = { readOnlyHint: true, openWorldHint: false };

// Two tools in one file: recipe_find and recipe_scale.

export const find = tool({
  description: "Find recipes of this project that use an ingredient",
  args: { ingredient: z.string().min(2).describe("Such as flour") },
  annotations: readOnly,
  async execute({ ingredient }, context) {
    const all = await recipes(context.directory);
    const found = all.filter(({ grams }) => Object.keys(grams).some((name) => name.includes(ingredient.toLowerCase())));
    return found.length === 0 ? `No recipe uses ${ingredient}` : found.map(({ name }) => name).join("\n");
  },
});

export const scale = tool({
  description: "Say how much of everything a recipe needs for a number of persons",
  args: {
    name: z.string().describe("The recipe's name"),
    persons: z.number().int().min(1).max(500).default(4).describe("How many eat"),
  },
  outputSchema: z.object({ name: z.string(), persons: z.number(), grams: z.record(z.string(), z.number()) }),
  annotations: readOnly,
  async execute({ name, persons }, context) {
    const recipe = (await recipes(context.directory)).find((one) => one.name.toLowerCase() === name.toLowerCase());
    if (!recipe) throw new Error(`there is no recipe "${name}"; recipe_find lists them by ingredient`);
    const scaled = Object.entries(recipe.grams).map(([what, much]) => [what, Math.round((much * persons) / recipe.serves)]);
    return { name: recipe.name, persons, grams: Object.fromEntries(scaled) as Record<string, number> };
  },
});
