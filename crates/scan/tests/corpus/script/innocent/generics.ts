// types with famous names
interface Process { env: string; exit(): void }
type Eval<T> = T extends Function ? ReturnType<typeof setTimeout> : never;
declare const process: Process;
export const value: Eval<number> | string = process.env;
