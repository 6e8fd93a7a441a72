// from the global object by a name made at run time
export const take = (name) => globalThis[name]; // <-
