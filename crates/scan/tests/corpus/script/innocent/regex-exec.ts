// a regular expression
export const match = (text: string) => /child_process/.exec(text) ?? /eval\(/.test(text);
