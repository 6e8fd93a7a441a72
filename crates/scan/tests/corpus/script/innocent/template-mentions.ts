// a template that mentions what is banned
export const text = (n: number) => `require("child_process") ${n} times`;
