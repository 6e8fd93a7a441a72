// a schema
import { z } from "zod";
export const schema = z.object({ exec: z.string(), env: z.record(z.string(), z.string()) }).strict();
