// the environment, imported
import { env } from "node:process";
export const key = env["API_KEY"]; // <-
