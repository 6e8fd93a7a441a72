// A tool's `args`: their JSON Schema, and how values are checked against them. Zod 4, Zod 3 and JSON Schema may stand
// side by side.

import type { z } from "zod";
import type { JsonSchema } from "../types.js";
import { messageOf, tellPath, type Issue } from "./failure.js";
import { isObject } from "./script.js";
import { zod } from "./sdk.js";
import { isZod3, schemaOfZod3, type Zod3 } from "./zod3.js";

export type Parsed = { value: unknown } | { issues: Issue[] };

export interface Arguments {
  inputSchema: JsonSchema;
  /** Undefined where Toolcrib's own check of the schema is all there is to do. */
  parse: ((input: Record<string, unknown>) => Parsed | Promise<Parsed>) | undefined;
  /** Which arguments Zod takes or refuses, whatever their schema says: all, or those of these names. */
  checks?: true | string[];
}

/** A schema that can't be shown to an agent. */
export class SchemaError extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

type Zod4 = z.ZodType;

function isZod4(value: unknown): value is Zod4 {
  return typeof value === "object" && value !== null && isObject((value as { _zod?: unknown })._zod);
}

export async function readArguments(args: object): Promise<Arguments> {
  if (isZod4(args)) return wholeZod4(await zod(), args as z.ZodObject);
  if (isZod3(args)) return wholeZod3(args);
  const given = args as Record<string, unknown>;
  if (given["type"] === "object" && isObject(given["properties"])) return { inputSchema: given, parse: undefined };
  const fours: Record<string, Zod4> = {};
  const threes: Record<string, Zod3> = {};
  const plain: Record<string, JsonSchema> = {};
  for (const [name, schema] of Object.entries(given)) {
    if (isZod4(schema)) fours[name] = schema;
    else if (isZod3(schema)) threes[name] = schema;
    else if (isPlain(schema)) plain[name] = schema;
    else throw new SchemaError(`the argument \`${name}\` has no schema`, HOW);
  }
  if (Object.keys(plain).length === 0 && Object.keys(threes).length === 0) {
    if (Object.keys(fours).length === 0) return { inputSchema: closed({}, []), parse: undefined };
    const z = await zod();
    return wholeZod4(z, z.object(fours));
  }
  return mixed(fours, threes, plain);
}

const HOW = "Give a Zod schema such as tool.schema.string(), or JSON Schema such as { type: \"string\" }";

function isPlain(value: unknown): value is JsonSchema {
  if (!isObject(value) || "~standard" in value) return false;
  const parent: unknown = Object.getPrototypeOf(value);
  return parent === Object.prototype || parent === null || (parent as object).constructor?.name === "Object";
}

function closed(properties: Record<string, unknown>, required: string[]): JsonSchema {
  const must = required.length > 0 ? { required } : {};
  return { type: "object", properties, ...must, additionalProperties: false };
}

function wholeZod4(z: typeof import("zod").z, object: z.ZodObject): Arguments {
  const inputSchema = toJsonSchema(z, object, "input");
  if (inputSchema["type"] !== "object") throw new SchemaError("`args` is a schema, but not of an object", HOW);
  let later = false;
  const parse = (input: unknown): Parsed | Promise<Parsed> => {
    if (!later) {
      try {
        return outcome(object.safeParse(input));
      } catch (error) {
        // Some part of it is async; it will be so at every call.
        if (!/async|promise/i.test(messageOf(error))) throw error;
        later = true;
      }
    }
    return object.safeParseAsync(input).then(outcome);
  };
  return { inputSchema, parse, checks: true };
}

function outcome(result: { success: boolean; data?: unknown; error?: { issues: Issue[] } }): Parsed {
  return result.success ? { value: result.data } : { issues: result.error!.issues };
}

/** By Zod's own export. What JSON can't say is an error that names the argument. */
export function toJsonSchema(z: typeof import("zod").z, schema: Zod4, io: "input" | "output"): JsonSchema {
  const refuse = (given: { path: PropertyKey[]; message: string; zodSchema: Kind }): "any" => {
    // A date is made of a text or a number.
    if (io === "input" && given.zodSchema._zod.def.coerce) return "any";
    const steps = given.path.filter((step) => step !== "properties" && step !== "items");
    const which = steps.length > 0 ? `the argument \`${tellPath(steps)}\`` : "the schema";
    throw new SchemaError(`${which} can't be written as JSON Schema: ${given.message}`, UNREPRESENTABLE);
  };
  try {
    const made = z.toJSONSchema(schema, {
      io,
      unrepresentable: refuse as never,
      // Another copy of Zod keeps its descriptions to itself.
      override: ({ zodSchema, jsonSchema }) => {
        const { def } = (zodSchema as unknown as Kind)._zod;
        if (def.type === "promise") throw new SchemaError("JSON has no promises, and `args` has one", NO_PROMISE);
        if (io === "input") widen(def, jsonSchema as JsonSchema);
        const words = (zodSchema as { description?: unknown }).description;
        if (typeof words === "string" && jsonSchema.$ref === undefined) jsonSchema.description ??= words;
        // Zod bounds every integer by what a number can hold; an agent has to read it, and learns nothing.
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      },
    }) as JsonSchema;
    delete made["$schema"];
    return { ...made };
  } catch (error) {
    if (error instanceof SchemaError) throw error;
    throw new SchemaError(`the arguments can't be written as JSON Schema: ${messageOf(error)}`, UNREPRESENTABLE);
  }
}

const NO_PROMISE = "Take what it would resolve to: z.string() in place of z.promise(z.string())";

interface Kind {
  _zod: { def: { type: string; coerce?: boolean; in?: Kind; shape?: Record<string, Kind> } };
}

/** What Zod changes before it looks at it may be more than the schema of what comes out says. */
function widen(def: Kind["_zod"]["def"], schema: JsonSchema): void {
  const { required } = schema;
  if (def.shape && Array.isArray(required)) {
    // What is caught may be left out.
    schema["required"] = required.filter((name: string) => def.shape![name]?._zod.def.type !== "catch");
    if ((schema["required"] as string[]).length === 0) delete schema["required"];
  }
  if (def.coerce && def.type === "date") schema["type"] = ["string", "number"];
  else if (def.coerce && typeof schema["type"] === "string") {
    schema["type"] = [...new Set([schema["type"], "string", "number", "boolean", "null"])];
    // These would be said of the text as it came.
    delete schema["format"];
    return;
  }
  if (def.type !== "catch" && !(def.type === "pipe" && def.in?._zod.def.type === "transform")) return;
  if (schema["$ref"] !== undefined || Object.keys(schema).length === 0) return;
  const { description, default: fallback, ...rest } = schema;
  for (const key of Object.keys(schema)) delete schema[key];
  // What it should be, and all else that is taken.
  Object.assign(schema, { anyOf: [rest, {}] });
  if (description !== undefined) schema["description"] = description;
  if (fallback !== undefined) schema["default"] = fallback;
}

const UNREPRESENTABLE =
  "Take what JSON can carry, and change it afterwards: z.string().transform((text) => new Date(text)) in place of z.date()";

function wholeZod3(schema: Zod3): Arguments {
  return {
    inputSchema: schemaOfZod3(schema, "args"),
    parse: async (input) => outcome(await schema.safeParseAsync(input)),
    checks: true,
  };
}

async function mixed(
  fours: Record<string, Zod4>,
  threes: Record<string, Zod3>,
  plain: Record<string, JsonSchema>,
): Promise<Arguments> {
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  let defs: JsonSchema = {};
  let four: Arguments | undefined;
  if (Object.keys(fours).length > 0) {
    const z = await zod();
    four = wholeZod4(z, z.object(fours));
    const { properties: own, required: must, $defs } = four.inputSchema;
    Object.assign(properties, own);
    required.push(...((must as string[] | undefined) ?? []));
    if ($defs !== undefined) defs = { $defs };
  }
  for (const [name, schema] of Object.entries(threes)) {
    properties[name] = schemaOfZod3(schema, name);
    if (!schema.isOptional()) required.push(name);
  }
  for (const [name, schema] of Object.entries(plain)) {
    // JSON Schema asks for values in the object above; `required: false` here says it in place.
    const { required: must, ...rest } = schema;
    properties[name] = typeof must === "boolean" ? rest : schema;
    if (must !== false && !("default" in schema)) required.push(name);
  }
  const inputSchema: JsonSchema = { ...closed(properties, required), ...defs };
  if (!four && Object.keys(threes).length === 0) return { inputSchema, parse: undefined };
  // What nobody asked for is left out, as Zod does it.
  delete inputSchema["additionalProperties"];
  const parse = async (input: Record<string, unknown>): Promise<Parsed> => {
    const value: Record<string, unknown> = {};
    const issues: Issue[] = [];
    for (const name of Object.keys(plain)) if (Object.hasOwn(input, name)) value[name] = input[name];
    const of4 = four && (await four.parse!(input));
    if (of4 && "issues" in of4) issues.push(...of4.issues);
    else if (of4) Object.assign(value, of4.value);
    for (const [name, schema] of Object.entries(threes)) {
      const one = outcome(await schema.safeParseAsync(input[name]));
      if ("issues" in one) issues.push(...one.issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
      else if (one.value !== undefined) value[name] = one.value;
    }
    return issues.length > 0 ? { issues } : { value };
  };
  return { inputSchema, parse, checks: [...Object.keys(fours), ...Object.keys(threes)] };
}

/** What `outputSchema` says, in JSON Schema. */
export async function readOutputSchema(given: unknown): Promise<JsonSchema> {
  if (isZod4(given)) return toJsonSchema(await zod(), given, "output");
  if (isZod3(given)) return schemaOfZod3(given, "outputSchema");
  if (isPlain(given)) return given;
  throw new SchemaError("`outputSchema` is no schema", HOW);
}
