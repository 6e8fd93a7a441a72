// the environment
export const key = process.env.API_KEY; // <-
