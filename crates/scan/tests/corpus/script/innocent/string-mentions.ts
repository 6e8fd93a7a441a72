// strings that mention what is banned
export const text = "never use child_process or eval('x')";
