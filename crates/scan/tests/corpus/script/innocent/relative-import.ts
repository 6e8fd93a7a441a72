// modules of one's own with famous names
import { exec } from "./child_process.ts";
import vm from "../vm/index.js";
exec(vm);
