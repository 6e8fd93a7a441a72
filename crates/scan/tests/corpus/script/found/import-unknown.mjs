// an import by a name made at run time
export const load = (name) => import(name); // <-
