// asking for a function
export const callable = (x: unknown) => x instanceof Function || Object.prototype.toString.call(x);
