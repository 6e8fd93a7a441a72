// a shell by the global Bun
export const list = async () => await Bun.$`ls`.text(); // <-
