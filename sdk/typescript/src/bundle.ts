// What dist/plugin.js holds: the SDK, and all of Zod, so that `import { z } from "zod"` can be answered with it too.

export * from "./index.js";
export * from "zod";
export { z as default } from "zod";
