// properties with famous names
export const options = { exec: true, eval: 1, env: {}, fetch: null, process: "x", child_process: 2 };
