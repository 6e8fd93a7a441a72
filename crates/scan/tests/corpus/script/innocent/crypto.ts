// hashes
import { createHash, randomUUID } from "node:crypto";
export const hash = (text: string) => createHash("sha256").update(text).digest("hex") + randomUUID();
