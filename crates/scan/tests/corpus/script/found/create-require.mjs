// a require made in a module
import { createRequire } from "node:module";
const load = createRequire(import.meta.url); // <-
load("child_process"); // <-
