// a request by fetch
export const get = (url: string) => fetch(url); // <-
