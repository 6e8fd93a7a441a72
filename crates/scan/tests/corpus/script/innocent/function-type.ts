// Function as a type
export const call = (f: Function) => f.apply(null, []);
export type F = Function;
