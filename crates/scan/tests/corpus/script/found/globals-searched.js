// all globals, tried one by one
for (const key of Object.getOwnPropertyNames(globalThis)) globalThis[key]("1"); // <-
