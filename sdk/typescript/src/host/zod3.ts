// Zod 3, which can't write JSON Schema itself: read by its own structure, as far as JSON goes.

import type { JsonSchema } from "../types.js";
import { isObject } from "./script.js";
import { SchemaError } from "./schema.js";

interface Result {
  success: boolean;
  data?: unknown;
  error?: { issues: { path: PropertyKey[]; message: string }[] };
}

export interface Zod3 {
  _def: Definition;
  description?: string;
  isOptional(): boolean;
  safeParseAsync(value: unknown): Promise<Result>;
}

interface Definition {
  typeName: string;
  checks?: { kind: string; value?: number; regex?: RegExp; inclusive?: boolean }[];
  type?: Zod3;
  innerType?: Zod3;
  schema?: Zod3;
  in?: Zod3;
  valueType?: Zod3;
  shape?: () => Record<string, Zod3>;
  options?: Zod3[] | Map<unknown, Zod3>;
  items?: Zod3[];
  values?: unknown;
  value?: unknown;
  defaultValue?: () => unknown;
  minLength?: { value: number } | null;
  maxLength?: { value: number } | null;
  unknownKeys?: string;
}

export function isZod3(value: unknown): value is Zod3 {
  if (typeof value !== "object" || value === null) return false;
  const { _def, safeParseAsync } = value as Partial<Zod3>;
  return isObject(_def) && typeof _def["typeName"] === "string" && typeof safeParseAsync === "function";
}

export function schemaOfZod3(schema: Zod3, path: string): JsonSchema {
  const made = withoutWords(schema, path);
  return schema.description === undefined ? made : { ...made, description: schema.description };
}

function withoutWords({ _def: def }: Zod3, path: string): JsonSchema {
  switch (def.typeName) {
    case "ZodString":
      return { type: "string", ...stringChecks(def) };
    case "ZodNumber":
      return numberSchema(def);
    case "ZodBoolean":
      return { type: "boolean" };
    case "ZodNull":
      return { type: "null" };
    case "ZodAny":
    case "ZodUnknown":
      return {};
    case "ZodLiteral":
      return { const: def.value };
    case "ZodEnum":
      return { type: "string", enum: def.values };
    case "ZodNativeEnum":
      return { enum: enumValues(def.values as Record<string, unknown>) };
    case "ZodArray":
      return {
        type: "array",
        items: schemaOfZod3(def.type!, `${path}[]`),
        ...(def.minLength ? { minItems: def.minLength.value } : {}),
        ...(def.maxLength ? { maxItems: def.maxLength.value } : {}),
      };
    case "ZodTuple":
      return { type: "array", prefixItems: def.items!.map((item, at) => schemaOfZod3(item, `${path}[${at}]`)) };
    case "ZodObject":
      return objectSchema(def, path);
    case "ZodRecord":
      return { type: "object", additionalProperties: schemaOfZod3(def.valueType!, path) };
    case "ZodUnion":
    case "ZodDiscriminatedUnion":
      return { anyOf: [...def.options!.values()].map((option) => schemaOfZod3(option as Zod3, path)) };
    case "ZodNullable":
      return { anyOf: [schemaOfZod3(def.innerType!, path), { type: "null" }] };
    case "ZodDefault":
      return { ...schemaOfZod3(def.innerType!, path), default: def.defaultValue!() };
    case "ZodOptional":
    case "ZodReadonly":
    case "ZodCatch":
      return schemaOfZod3(def.innerType!, path);
    case "ZodBranded":
      return schemaOfZod3(def.type!, path);
    case "ZodEffects":
      return schemaOfZod3(def.schema!, path);
    case "ZodPipeline":
      return schemaOfZod3(def.in!, path);
    default:
      throw new SchemaError(
        `the argument \`${path}\` is a ${def.typeName} of Zod 3, which can't be written as JSON Schema here`,
        "Use tool.schema (Zod 4) for it, or a kind that JSON has",
      );
  }
}

function objectSchema(def: Definition, path: string): JsonSchema {
  const fields = Object.entries(def.shape!());
  const required = fields.filter(([, field]) => !field.isOptional()).map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(([name, field]) => [name, schemaOfZod3(field, `${path}.${name}`)])),
    ...(required.length > 0 ? { required } : {}),
    ...(def.unknownKeys === "strict" ? { additionalProperties: false } : {}),
  };
}

const FORMATS: Record<string, string> = { email: "email", url: "uri", uuid: "uuid", datetime: "date-time", date: "date" };

function stringChecks({ checks = [] }: Definition): JsonSchema {
  const made: JsonSchema = {};
  for (const { kind, value, regex } of checks) {
    if (kind === "min" || kind === "length") made["minLength"] = value;
    if (kind === "max" || kind === "length") made["maxLength"] = value;
    if (kind === "regex" && regex) made["pattern"] = regex.source;
    if (FORMATS[kind] !== undefined) made["format"] = FORMATS[kind];
  }
  return made;
}

function numberSchema({ checks = [] }: Definition): JsonSchema {
  const made: JsonSchema = { type: "number" };
  for (const { kind, value, inclusive } of checks) {
    if (kind === "int") made["type"] = "integer";
    if (kind === "min") made[inclusive ? "minimum" : "exclusiveMinimum"] = value;
    if (kind === "max") made[inclusive ? "maximum" : "exclusiveMaximum"] = value;
    if (kind === "multipleOf") made["multipleOf"] = value;
  }
  return made;
}

/** An enum with numbers has its names as values too. */
function enumValues(values: Record<string, unknown>): unknown[] {
  const names = Object.keys(values).filter((name) => typeof values[values[name] as string] !== "number");
  return [...new Set(names.map((name) => values[name]))];
}
