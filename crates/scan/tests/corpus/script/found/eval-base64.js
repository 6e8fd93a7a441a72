// from base64
globalThis[atob("ZXZhbA==")]("1"); // <-
