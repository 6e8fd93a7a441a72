// the environment, taken apart
const { env } = process;
export const key = env.API_KEY; // <-
