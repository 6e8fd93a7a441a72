// computed members
export const at = (rows: number[][], i: number, j: number) => rows[i][j] + rows["length"];
