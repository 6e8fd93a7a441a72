// an export of all that somebody has
export * from "node:worker_threads"; // <-
