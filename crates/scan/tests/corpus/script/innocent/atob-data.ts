// data in base64
export const data = atob("aGVsbG8=") + Buffer.from("hello").toString("base64");
