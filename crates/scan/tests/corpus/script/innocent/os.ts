// facts about the machine
import os from "node:os";
export const name = os.hostname();
