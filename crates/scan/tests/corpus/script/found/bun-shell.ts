// a shell by Bun
import { $ } from "bun";
export const list = async () => await $`ls`; // <-
