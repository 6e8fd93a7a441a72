// a module that comes as an argument
export const go = (cp: any) => cp.execSync("ls");
